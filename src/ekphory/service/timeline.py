"""When memories happened: counted by hour, day, week … whichever makes a picture of few bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ekphory.moments import EPOCH

IntArray = NDArray[np.int64]
UnitName = Literal["hour", "day", "week", "month", "quarter", "year", "decade", "century"]

MOST_BARS = 72
_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
_MONTHS_UNTIL_1970 = 1970 * 12
_LAST_YEAR = 9998
"""No memory happened later."""


@dataclass(frozen=True, slots=True)
class Bar:
    """What happened in one unit of time.

    Attributes:
        begins, ends: From the one moment on, before the other.
        counts: How many memories, by their type; types without any are left out.
    """

    begins: datetime
    ends: datetime
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Bars without a gap from the earliest memory to the latest; none where there is no memory."""

    unit: UnitName | None
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit of time: which one a moment lies in, and when that one begins."""

    name: UnitName
    number: Callable[[IntArray], IntArray]
    beginning: Callable[[int], datetime]


def timeline(at: IntArray, types: NDArray[np.str_]) -> Timeline:
    """Count memories by time.

    Args:
        at: When each happened, microseconds since 1970.
        types: The type of each.
    """
    if not len(at):
        return Timeline(None, ())
    unit = next((each for each in _UNITS if _bars(each, at) <= MOST_BARS), _UNITS[-1])
    numbers = unit.number(at)
    first = int(numbers.min())
    length = int(numbers.max()) - first + 1
    by_type = {
        str(name): np.bincount(numbers[types == name] - first, minlength=length)
        for name in np.unique(types)
    }
    bars = tuple(
        Bar(
            unit.beginning(first + place),
            unit.beginning(first + place + 1),
            {name: int(counts[place]) for name, counts in by_type.items() if counts[place]},
        )
        for place in range(length)
    )
    return Timeline(unit.name, bars)


def _bars(unit: _Unit, at: IntArray) -> int:
    numbers = unit.number(np.array([at.min(), at.max()]))
    return int(numbers[1] - numbers[0]) + 1


def _of_length(name: UnitName, length: int, *, shift: int = 0) -> _Unit:
    """Make a unit of always the same length; both lengths in microseconds."""

    def number(at: IntArray) -> IntArray:
        return np.asarray((at + shift) // length, np.int64)

    def beginning(which: int) -> datetime:
        return EPOCH + timedelta(microseconds=which * length - shift)

    return _Unit(name, number, beginning)


def _of_months(name: UnitName, months: int) -> _Unit:
    """Make a unit of so many months of the calendar."""

    def number(at: IntArray) -> IntArray:
        since_1970 = at.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
        return np.asarray((since_1970 + _MONTHS_UNTIL_1970) // months, np.int64)

    def beginning(which: int) -> datetime:
        year, month = divmod(which * months, 12)
        if year < 1:
            return datetime.min.replace(tzinfo=UTC)
        if year > _LAST_YEAR:
            return datetime(_LAST_YEAR, 12, 31, 23, 59, 59, tzinfo=UTC)
        return datetime(year, month + 1, 1, tzinfo=UTC)

    return _Unit(name, number, beginning)


_UNITS = (
    _of_length("hour", _HOUR),
    _of_length("day", _DAY),
    # 1970 began on a Thursday; weeks begin on Monday.
    _of_length("week", 7 * _DAY, shift=3 * _DAY),
    _of_months("month", 1),
    _of_months("quarter", 3),
    _of_months("year", 12),
    _of_months("decade", 120),
    _of_months("century", 1_200),
)
