"""Ages in days: ten buckets, and words for stretches of them."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from ekphory.models.late_bound import AGE_BUCKETS, AGE_LIMITS_DAYS

OLDEST = 1500
"""The greatest age that is drawn, in days."""

_LOWEST = (0, *AGE_LIMITS_DAYS)
_HIGHEST = (*AGE_LIMITS_DAYS, OLDEST)


@dataclass(frozen=True, slots=True)
class TimePhrase:
    """Words of a query for a time.

    Attributes:
        words: Ways to say it.
        low, high: The ages in days that it may mean, both inclusive.
    """

    words: tuple[str, ...]
    low: float
    high: float

    def covers(self, days: float) -> bool:
        """Whether it may mean that age."""
        return self.low <= days <= self.high


def bucket_of(days: float) -> int:
    """Give the bucket of an age, from 0 to 9."""
    return bisect_left(AGE_LIMITS_DAYS, days)


def draw_age(source: random.Random) -> float:
    """Draw a bucket, and an age within it."""
    return _age_within(source, source.randrange(AGE_BUCKETS))


def draw_age_inside(source: random.Random, phrase: TimePhrase) -> float:
    """Draw an age that the phrase means."""
    return round(source.uniform(phrase.low, phrase.high), 1)


def draw_age_outside(source: random.Random, phrase: TimePhrase) -> float:
    """Draw an age from a bucket that the phrase does not touch."""
    first, last = bucket_of(phrase.low), bucket_of(phrase.high)
    free = [bucket for bucket in range(AGE_BUCKETS) if not first <= bucket <= last]
    return _age_within(source, source.choice(free))


def draw_older_age(source: random.Random, days: float) -> float:
    """Draw an age greater than `days`."""
    return round(source.uniform(days + 0.1, max(2 * days, days + 30)), 1)


def phrase_for(
    source: random.Random, phrases: Sequence[TimePhrase], days: float
) -> TimePhrase | None:
    """Draw a phrase that may mean this age; None where none does."""
    fitting = [phrase for phrase in phrases if phrase.covers(days)]
    return source.choice(fitting) if fitting else None


def _age_within(source: random.Random, bucket: int) -> float:
    low = _LOWEST[bucket] + (0.1 if bucket else 0.0)
    return round(source.uniform(low, _HIGHEST[bucket]), 1)
