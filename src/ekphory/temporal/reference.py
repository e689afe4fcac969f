"""What a query says about time: moments, sessions, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

ReferenceKind = Literal["interval", "sessions", "event"]


@dataclass(frozen=True, slots=True)
class Interval:
    """From `start` on, up to but without `end`.

    Attributes:
        start, end: Timezone-aware, in UTC; None where it is open.
    """

    start: datetime | None
    end: datetime | None

    def __contains__(self, moment: datetime) -> bool:
        after_start = self.start is None or self.start <= moment
        return after_start and (self.end is None or moment < self.end)


NO_SUCH_SESSION = 1_000_000
"""A number that no session has, for what lies before the first or after the last one."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions by their number in the order of time, both ends included.

    Attributes:
        first, last: From 1, the oldest, upwards, or from -1, the newest, downwards.
    """

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeReference:
    """One expression of time in a query.

    Attributes:
        kind: `interval`; `sessions`; or `event`, which only the memories themselves can date
            ("before we moved"), so that it has no interval.
        text: The expression as written.
        start, end: Where it stands in the query, as for a slice.
        confidence: How sure it is that it means a time, and this one, in [0, 1].
        interval: The time that is meant; with `sessions`, the time within which they are counted.
        wider: Where to look if nothing lies in the interval, since people count roughly.
        sessions: The sessions that are meant.
        before_ongoing: Whether the session that is still going on is not meant ("earlier today").
        newest_first: Whether the newest matters most ("recently").
    """

    kind: ReferenceKind
    text: str
    start: int
    end: int
    confidence: float
    interval: Interval | None = None
    wider: Interval | None = None
    sessions: Sessions | None = None
    before_ongoing: bool = False
    newest_first: bool = False


@dataclass(frozen=True, slots=True)
class TimeReading:
    """What a query says about time, and what else it says.

    Attributes:
        references: In the order of the text; none where it says nothing about time.
        remaining: The query without expressions of time and without the words that any question
            is made of ("what did we talk about"): what is left to look for. Empty when the time
            is all that was asked for.
        missing: What would have been needed to read more, such as an extra; None if nothing.
    """

    references: tuple[TimeReference, ...]
    remaining: str
    missing: str | None = None

    @property
    def only_time(self) -> bool:
        """Whether the query asks for a time and nothing else."""
        dated = any(reference.kind != "event" for reference in self.references)
        return dated and not self.remaining
