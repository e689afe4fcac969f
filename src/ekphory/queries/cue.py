"""What a cue is: words that say what a query is after."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ekphory.queries.query_class import NO_HINTS, Intent, QueryHints


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """Phrases that mean the same.

    Attributes:
        signal: Its name in the trace.
        phrases: Separated by commas, in lower case. Of phrases that begin at one word the longest
            counts. One with Chinese or Japanese characters is looked for anywhere.
        intent: What they speak for; None where they only give hints.
        weight: How strongly; of several intents the heaviest sum wins, if it reaches 1.
        hints: What they say about the memories that are wanted.
    """

    signal: str
    phrases: str
    intent: Intent | None = None
    weight: float = 0.0
    hints: QueryHints = NO_HINTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A pattern over the kinds of words, one letter a word, as `words.py` gives them.

    Attributes:
        signal: Its name in the trace.
        pattern: Matches anywhere in the letters.
        intent, weight, hints: As those of a cue.
    """

    signal: str
    pattern: re.Pattern[str]
    intent: Intent | None = None
    weight: float = 0.0
    hints: QueryHints = NO_HINTS
