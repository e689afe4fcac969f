"""Invented dates for conversations, and words that name one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Literal

from ekphory.models.spoken_date import spoken_date
from ekphory.training.question_groups import Placement

_EARLIEST = datetime(2017, 1, 1, tzinfo=UTC)
_SPAN_DAYS = 9 * 365
_MOST_GAP_DAYS = 45
_MINUTES_OF_A_DAY = 24 * 60

Grain = Literal["day", "month", "year"]
GRAINS: tuple[Grain, ...] = ("day", "month", "year")


@dataclass(frozen=True, slots=True)
class NamedTime:
    """A day, month or year in words.

    Attributes:
        words: Such as `on 8 May 2023` or `in May 2023`.
        grain: How much of a date has to agree.
        day: A moment inside it.
    """

    words: str
    grain: Grain
    day: datetime

    def covers(self, at: datetime) -> bool:
        """Whether that moment is inside."""
        return _part(at, self.grain) == _part(self.day, self.grain)


def name_time(at: datetime, grain: Grain) -> NamedTime:
    """Put a moment's day, month or year into words."""
    day = spoken_date(at)
    words = {
        "day": f"on {day}",
        "month": f"in {day.partition(' ')[2]}",
        "year": f"in {at.year}",
    }
    return NamedTime(words[grain], grain, at)


def name_time_apart(at: datetime, others: Sequence[datetime]) -> NamedTime | None:
    """Name the widest time around `at` that holds none of `others`; None where even a day does."""
    for grain in reversed(GRAINS):
        named = name_time(at, grain)
        if not any(named.covers(other) for other in others):
            return named
    return None


def draw_date(random: Random) -> datetime:
    """Draw a moment of the last years."""
    minutes = random.randrange(_SPAN_DAYS * _MINUTES_OF_A_DAY)
    return _EARLIEST + timedelta(minutes=minutes)


def draw_other_date(random: Random, named: NamedTime) -> datetime:
    """Draw a moment outside of a time, and not far from it."""
    while True:
        shift = random.choice((-1, 1)) * random.randint(1, 500)
        other = named.day + timedelta(days=shift)
        if not named.covers(other):
            return other


def draw_session_dates(
    placements: Sequence[Placement | None], random: Random
) -> list[datetime | None]:
    """Give every turn without a date one: a day for each conversation, later for the later ones."""
    sessions = sorted({place.session for place in placements if place is not None})
    at = draw_date(random)
    days = {}
    for session in sessions:
        days[session] = at
        at += timedelta(days=random.randint(1, _MOST_GAP_DAYS), minutes=random.randrange(600))
    return [None if place is None else place.at or days[place.session] for place in placements]


def _part(at: datetime, grain: Grain) -> tuple[int, ...]:
    parts = {"day": (at.year, at.month, at.day), "month": (at.year, at.month), "year": (at.year,)}
    return parts[grain]
