"""Days, weeks, months and years around a local moment, never beyond the calendar's ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

from ekphory.temporal.reference import Interval

Unit = Literal[
    "second", "minute", "hour", "day", "week", "fortnight", "month", "quarter", "year", "decade"
]

EARLIEST = datetime(2, 1, 1)
LATEST = datetime(9998, 1, 1)
DAY = timedelta(days=1)
_FIXED: dict[Unit, timedelta] = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": DAY,
    "week": timedelta(weeks=1),
    "fortnight": timedelta(weeks=2),
}
_MONTHS: dict[Unit, int] = {"month": 1, "quarter": 3, "year": 12, "decade": 120}


@dataclass(frozen=True, slots=True)
class Span:
    """A time in local, naive moments, without its end; None where it is open."""

    start: datetime | None
    end: datetime | None

    def in_utc(self, zone: tzinfo) -> Interval:
        """Give the same time in UTC."""
        return Interval(_to_utc(self.start, zone), _to_utc(self.end, zone))


def bounded(moment: datetime) -> datetime:
    """Keep a moment within the years that can be counted in."""
    return min(max(moment, EARLIEST), LATEST)


def moved(moment: datetime, by: timedelta) -> datetime:
    """Add a duration."""
    if by <= EARLIEST - moment:
        return EARLIEST
    return LATEST if by >= LATEST - moment else moment + by


def shifted(moment: datetime, unit: Unit, count: int) -> datetime:
    """Go `count` units on, back where it is negative; the 31st becomes a shorter month's last."""
    if unit in _FIXED:
        return moved(moment, _FIXED[unit] * count)
    month = month_start(moment.year * 12 + moment.month - 1 + _MONTHS[unit] * count)
    last = moved(month_start(month.year * 12 + month.month), -DAY)
    return bounded(
        moment.replace(year=month.year, month=month.month, day=min(moment.day, last.day))
    )


def month_start(months: int) -> datetime:
    """Give the first moment of a month, counted from January of the year 0."""
    within = min(max(months, EARLIEST.year * 12), LATEST.year * 12)
    return datetime(within // 12, within % 12 + 1, 1)


def day_start(moment: datetime) -> datetime:
    """Give the midnight before."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def unit_start(unit: Unit, moment: datetime) -> datetime:
    """Give the beginning of the hour, day, week (Monday), month … that holds a moment."""
    midnight = day_start(moment)
    if unit in ("second", "minute", "hour"):
        hour = moment.replace(minute=0, second=0, microsecond=0)
        return hour if unit == "hour" else moment.replace(microsecond=0)
    if unit == "day":
        return midnight
    if unit in ("week", "fortnight"):
        return moved(midnight, -DAY * moment.weekday())
    if unit == "month":
        return midnight.replace(day=1)
    if unit == "quarter":
        return midnight.replace(day=1, month=(moment.month - 1) // 3 * 3 + 1)
    year = moment.year // 10 * 10 if unit == "decade" else moment.year
    return datetime(max(year, EARLIEST.year), 1, 1)


def unit_span(unit: Unit, moment: datetime, *, offset: int = 0) -> Span:
    """Give the whole unit that holds a moment, or the one so many further on."""
    start = shifted(unit_start(unit, moment), unit, offset)
    return Span(start, shifted(start, unit, 1))


def day_span(moment: datetime, *, days: int = 1) -> Span:
    """Give the day that holds a moment, with the ones after it up to `days` in all."""
    start = day_start(moment)
    return Span(start, moved(start, DAY * days))


def dated(year: int, month: int, day: int) -> Span | None:
    """Give a day of the calendar; None where there is no such day."""
    if not EARLIEST.year <= year < LATEST.year or not 1 <= month <= 12 or day < 1:
        return None
    start = month_start(year * 12 + month - 1)
    wanted = moved(start, DAY * (day - 1))
    return day_span(wanted) if wanted.month == month else None


def length(span: Span) -> timedelta | None:
    """How long it is; None where it is open."""
    return None if span.start is None or span.end is None else span.end - span.start


def _to_utc(moment: datetime | None, zone: tzinfo) -> datetime | None:
    return None if moment is None else moment.replace(tzinfo=zone).astimezone(UTC)
