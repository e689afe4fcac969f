"""What a query says about time, and the calendar in which it is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

ReferenceKind = Literal["interval", "sessions", "event"]
Unit = Literal[
    "second", "minute", "hour", "day", "week", "fortnight", "month", "quarter", "year", "decade"
]

NO_SUCH_SESSION = 1_000_000
"""A number that no session has, for what lies before the first or after the last one."""


@dataclass(frozen=True, slots=True)
class Interval:
    """From `start` on, up to but without `end`.

    Attributes:
        start, end: Timezone-aware, in UTC; None where it is open.
    """

    start: datetime | None
    end: datetime | None


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


# Days, weeks, months and years around a local moment, never beyond the calendar's ends.

EARLIEST, LATEST = datetime(2, 1, 1), datetime(9998, 1, 1)
DAY, WEEK = timedelta(days=1), timedelta(weeks=1)
_DURATIONS: dict[str, timedelta] = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": DAY,
    "week": WEEK,
    "fortnight": 2 * WEEK,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}


@dataclass(frozen=True, slots=True)
class Span:
    """A time in local, naive moments, without its end.

    Attributes:
        start, end: The first and the last moment of all where it is open.
    """

    start: datetime = datetime.min
    end: datetime = datetime.max

    @property
    def length(self) -> timedelta:
        """How long it is."""
        return self.end - self.start

    @property
    def is_open(self) -> bool:
        """Whether it has no beginning or no end."""
        return self.start == datetime.min or self.end == datetime.max

    def to_utc(self, zone: tzinfo) -> Interval:
        """Return the same time in UTC."""
        start, end = (
            None if moment in (datetime.min, datetime.max) else moment.replace(tzinfo=zone)
            for moment in (self.start, self.end)
        )
        return Interval(start and start.astimezone(UTC), end and end.astimezone(UTC))


def clamp(moment: datetime) -> datetime:
    """Return the nearest moment within the years that can be counted in."""
    return min(max(moment, EARLIEST), LATEST)


def move(moment: datetime, by: timedelta) -> datetime:
    """Return the moment so much later."""
    if by <= EARLIEST - moment:
        return EARLIEST
    return LATEST if by >= LATEST - moment else moment + by


def shift(moment: datetime, unit: Unit, count: int) -> datetime:
    """Go `count` units on, back where it is negative; the 31st becomes a shorter month's last."""
    if unit in _DURATIONS:
        return move(moment, _DURATIONS[unit] * count)
    month = find_month_start(moment.year * 12 + moment.month - 1 + _MONTHS[unit] * count)
    last = move(find_month_start(month.year * 12 + month.month), -DAY)
    return clamp(moment.replace(year=month.year, month=month.month, day=min(moment.day, last.day)))


def find_month_start(months: int) -> datetime:
    """Return the first moment of a month, counted from January of the year 0."""
    within = min(max(months, EARLIEST.year * 12), LATEST.year * 12)
    return datetime(within // 12, within % 12 + 1, 1)


def span_months(months: int, count: int = 1) -> Span:
    """Return so many months, from the one that `find_month_start` counts."""
    start = find_month_start(months)
    return Span(start, shift(start, "month", count))


def find_day_start(moment: datetime) -> datetime:
    """Return the midnight before."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def find_unit_start(unit: Unit, moment: datetime) -> datetime:
    """Return the beginning of the day, week (Monday), month … that holds a moment."""
    midnight = find_day_start(moment)
    if unit in ("week", "fortnight"):
        return move(midnight, -DAY * moment.weekday())
    if unit in _MONTHS:
        months = moment.year * 12 + moment.month - 1
        return find_month_start(months // _MONTHS[unit] * _MONTHS[unit])
    return midnight


def span_unit(unit: Unit, moment: datetime, *, offset: int = 0) -> Span:
    """Return the whole unit that holds a moment, or the one so many further on."""
    start = shift(find_unit_start(unit, moment), unit, offset)
    return Span(start, shift(start, unit, 1))


def span_days(moment: datetime, first: int = 0, end: int = 1) -> Span:
    """Return days counted from the one that holds a moment, by default that one alone."""
    return span_hours(moment, 24 * first, 24 * end)


def span_hours(moment: datetime, first: int, end: int) -> Span:
    """Return hours counted from the midnight before a moment, without the last."""
    midnight = find_day_start(moment)
    return Span(move(midnight, timedelta(hours=first)), move(midnight, timedelta(hours=end)))


def span_date(year: int, month: int, day: int, days: int = 1) -> Span | None:
    """Return days from a date of the calendar on; None where there is no such date."""
    if not EARLIEST.year <= year < LATEST.year or not 1 <= month <= 12 or day < 1:
        return None
    wanted = move(find_month_start(year * 12 + month - 1), DAY * (day - 1))
    return span_days(wanted, 0, days) if wanted.month == month else None


# What returns: weekdays, months, seasons, holidays.

Choice = Literal["begun", "over", "current", "ahead"]


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A time that returns, such as Friday, May, or Christmas.

    Attributes:
        of: Its time by the number of the week or year; None where there is none in that year.
        current: The number now.
        every: How far the next one is.
    """

    of: Callable[[int], Span | None]
    current: int
    every: Unit

    def pick(self, choice: Choice, now: datetime, *, back: int = 0) -> Span | None:
        """Return the newest that has begun, or is over, the one of now, or the next one ahead.

        Args:
            choice: Which of these.
            now: The local moment.
            back: How many before that one.
        """
        if choice == "current":
            return self.of(self.current - back)
        # Eight years back there was a 29 February, even across 1900.
        for step in range(9):
            number = self.current + step if choice == "ahead" else self.current - step
            span = self.of(number)
            edge = span and (span.end if choice == "over" else span.start)
            if edge and (edge > now) == (choice == "ahead"):
                return self.of(number - back)
        return None


def find_easter(year: int) -> datetime:
    """Return Easter Sunday of the Gregorian calendar.

    Source: the anonymous algorithm in Meeus, Astronomical Algorithms (1991), chapter 8.
    """
    golden, century, rest = year % 19, year // 100, year % 100
    leap, shift_of_leap = divmod(century, 4)
    moon = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - leap - moon + 15) % 30
    weekday = (32 + 2 * shift_of_leap + 2 * (rest // 4) - epact - rest % 4) % 7
    correction = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * correction + 114, 31)
    return datetime(year, month, day + 1)
