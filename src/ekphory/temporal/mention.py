"""What a rule finds in a query, and what a rule is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from ekphory.temporal.almanac import Span, Unit
from ekphory.temporal.reference import Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """An expression of time that is still being put together with its neighbours.

    Attributes:
        start, end: Where it stands in the text.
        confidence: As in `TimeReference`.
        span: The time it means, local; None for sessions and for events.
        wider: As in `TimeReference`, local.
        sessions: The sessions it means.
        repeats: How far the next time of the same name is, where it does not say which is meant:
            a year for "May 8th", a week for "Tuesday".
        before_ongoing, newest_first: As in `TimeReference`.
    """

    start: int
    end: int
    confidence: float
    span: Span | None = None
    wider: Span | None = None
    sessions: Sessions | None = None
    repeats: Unit | None = None
    before_ongoing: bool = False
    newest_first: bool = False


@dataclass(frozen=True, slots=True)
class Reader:
    """The text that is read and the local moment it was written.

    Attributes:
        text: As long as the query, with plain apostrophes and dashes.
        now: Local and naive.
    """

    text: str
    now: datetime

    def before(self, place: int) -> str:
        """Give what stands before a place, as far as a rule may look."""
        return self.text[max(0, place - 80) : place]

    def after(self, place: int) -> str:
        """Give what stands after a place, as far as a rule may look."""
        return self.text[place : place + 80]


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to say a time.

    Attributes:
        cues: Words in lower case of which the text must hold one; "0" stands for any digit.
        pattern: What it looks like, in upper or lower case.
        read: Makes mentions of a match; none where it is no time after all.
    """

    cues: frozenset[str]
    pattern: str
    read: Callable[[re.Match[str], Reader], Sequence[Mention]]

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """Find it from left to right."""
        return _compiled(self.pattern).finditer(text)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # At the first search and not at import: all of them would take a third of a second.
    return re.compile(pattern, re.IGNORECASE)


def rule(
    cues: str, pattern: str, read: Callable[[re.Match[str], Reader], Sequence[Mention]]
) -> Rule:
    """Build a rule from cues in one text, and a pattern that ignores case."""
    return Rule(frozenset(cues.split()), pattern, read)


def mention(
    match: re.Match[str],
    span: Span | None,
    confidence: float,
    *,
    wider: Span | None = None,
    repeats: Unit | None = None,
) -> tuple[Mention, ...]:
    """Give the one mention of a whole match, none where it has no span."""
    if span is None:
        return ()
    return (
        Mention(
            start=match.start(),
            end=match.end(),
            span=span,
            confidence=confidence,
            wider=wider,
            repeats=repeats,
        ),
    )
