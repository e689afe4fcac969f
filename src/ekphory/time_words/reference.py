"""What a query says about time, and the words and days that all rules share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from typing import Literal

# What a query says about time: moments, sessions, and how sure that is.

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


# Days, weeks, months and years around a local moment, never beyond the calendar's ends.

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
_MONTHS_OF_YEAR: dict[Unit, int] = {"month": 1, "quarter": 3, "year": 12, "decade": 120}


@dataclass(frozen=True, slots=True)
class Span:
    """A time in local, naive moments, without its end; None where it is open."""

    start: datetime | None
    end: datetime | None

    def in_utc(self, zone: tzinfo) -> Interval:
        """Return the same time in UTC."""
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
    month = month_start(moment.year * 12 + moment.month - 1 + _MONTHS_OF_YEAR[unit] * count)
    last = moved(month_start(month.year * 12 + month.month), -DAY)
    return bounded(
        moment.replace(year=month.year, month=month.month, day=min(moment.day, last.day))
    )


def month_start(months: int) -> datetime:
    """Return the first moment of a month, counted from January of the year 0."""
    within = min(max(months, EARLIEST.year * 12), LATEST.year * 12)
    return datetime(within // 12, within % 12 + 1, 1)


def day_start(moment: datetime) -> datetime:
    """Return the midnight before."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def unit_start(unit: Unit, moment: datetime) -> datetime:
    """Return the beginning of the hour, day, week (Monday), month … that holds a moment."""
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
    """Return the whole unit that holds a moment, or the one so many further on."""
    start = shifted(unit_start(unit, moment), unit, offset)
    return Span(start, shifted(start, unit, 1))


def day_span(moment: datetime, *, days: int = 1) -> Span:
    """Return the day that holds a moment, with the ones after it up to `days` in all."""
    start = day_start(moment)
    return Span(start, moved(start, DAY * days))


def dated(year: int, month: int, day: int) -> Span | None:
    """Return a day of the calendar; None where there is no such day."""
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


# English words of time, as pieces of patterns and as numbers.

_MONTHS = (
    "january jan,february feb,march mar,april apr,may,june jun,july jul,august aug,"
    "september sept sep,october oct,november nov,december dec"
)
_WEEKDAYS = (
    "monday mon,tuesday tues tue,wednesday weds wed,thursday thurs thur thu,friday fri,"
    "saturday sat,sunday sun"
)
_ONES = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
_ONES += "sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINAL_ONES = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
_ORDINAL_ONES += "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
_ORDINAL_TENS = "twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth"
_UNITS: dict[Unit, str] = {
    "second": "seconds second secs sec",
    "minute": "minutes minute mins min",
    "hour": "hours hour hrs hr",
    "day": "days day nights night",
    "week": "weeks week",
    "fortnight": "fortnights fortnight",
    "month": "months month",
    "quarter": "quarters quarter",
    "year": "years year yrs yr",
    "decade": "decades decade",
}


def _numbered(names: str) -> dict[str, int]:
    return {
        name: place for place, group in enumerate(names.split(","), 1) for name in group.split()
    }


def _compounds(tens: str, ones: str) -> dict[str, int]:
    return {
        f"{ten} {one}": 10 * place + number
        for place, ten in enumerate(tens.split(), 2)
        for number, one in enumerate(ones.split()[:9], 1)
    }


def any_of(words: Iterable[str]) -> str:
    """Return a pattern for one of some words, longest first, with any space or hyphen inside."""
    longest_first = sorted(words, key=len, reverse=True)
    return "(?:" + "|".join(word.replace(" ", r"[\s-]+") for word in longest_first) + ")"


def folded(text: str) -> str:
    """Return words as the tables below have them."""
    return " ".join(text.lower().replace("-", " ").replace(".", "").split())


MONTHS = _numbered(_MONTHS)
"""1 to 12 by name and abbreviation."""
WEEKDAYS = {name: number - 1 for name, number in _numbered(_WEEKDAYS).items()}
"""0 to 6 from Monday, by name and abbreviation."""
UNITS: Mapping[str, Unit] = {name: unit for unit, names in _UNITS.items() for name in names.split()}

_NUMBERS = (
    {word: number for number, word in enumerate(_ONES.split(), 1)}
    | {word: 10 * place for place, word in enumerate(_TENS.split(), 2)}
    | _compounds(_TENS, _ONES)
)
_VAGUE = {"a couple": 2, "a couple of": 2, "couple": 2, "couple of": 2, "a few": 3, "few": 3}
_VAGUE |= {"several": 4}
_ORDINALS = (
    {word: number for number, word in enumerate(_ORDINAL_ONES.split(), 1)}
    | {word: 10 * place for place, word in enumerate(_ORDINAL_TENS.split(), 2)}
    | _compounds(_TENS, _ORDINAL_ONES)
    | {"hundredth": 100}
)

MONTH = any_of(MONTHS) + r"\b\.?"
WEEKDAY_NAME = any_of(WEEKDAYS)
WEEKDAY = WEEKDAY_NAME + r"\b\.?"
UNIT = any_of(UNITS) + r"\b"
YEAR = r"(?:19|20)\d\d(?!\d)"
NUMBER = rf"(?:\d{{1,4}}(?!\d)|{any_of(_NUMBERS)}\b)"
COUNT = rf"(?:\d{{1,4}}(?!\d)|{any_of({*_NUMBERS, *_VAGUE, 'a', 'an'})}\b)"
ORDINAL = rf"(?:\d{{1,4}}(?:st|nd|rd|th)|{any_of(_ORDINALS)})\b"
_DAY_WORDS = [word for word, number in _ORDINALS.items() if number <= 31]
_LAST_OF = "weekend morning afternoon evening spring summer autumn fall winter christmas xmas "
_LAST_OF += "thanksgiving halloween easter"
_NO_LAST_DAY = rf"(?!\s+(?:{UNIT}|{MONTH}|{WEEKDAY}|{any_of(_LAST_OF.split())}\b))"
BEFORE_LAST = rf"before\s+(?:the\s+)?last\b{_NO_LAST_DAY}"
"""Not the beginning of "before last Tuesday"."""
SIDE = r"(?:before|prior\s+to|preceding|after|following)"
DAY_OF_MONTH = rf"(?:(?:[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?|{any_of(_DAY_WORDS)})\b"


def month_number(text: str) -> int:
    """Return 1 to 12 for a match of `MONTH`."""
    return MONTHS[folded(text)]


def weekday_number(text: str) -> int:
    """Return 0 to 6 for a match of `WEEKDAY`."""
    return WEEKDAYS[folded(text)]


def unit_of(text: str) -> Unit:
    """Return the unit for a match of `UNIT`."""
    return UNITS[folded(text)]


def count_of(text: str) -> int:
    """Return the number for a match of `COUNT` or `NUMBER`."""
    word = folded(text)
    if word in ("a", "an"):
        return 1
    return int(word) if word.isdecimal() else (_NUMBERS | _VAGUE)[word]


def step_of(text: str) -> int:
    """Return 1 for words that say "after", -1 for any other match of `SIDE` and for "previous"."""
    return 1 if folded(text) in ("after", "following") else -1


def is_exact(text: str) -> bool:
    """Whether a match of `COUNT` says a number and not some number."""
    return folded(text) not in _VAGUE


def ordinal_of(text: str) -> int:
    """Return the number for a match of `ORDINAL` or `DAY_OF_MONTH`."""
    word = folded(text)
    return _ORDINALS[word] if word in _ORDINALS else int(word.rstrip("stndrh"))


# What a rule finds in a query, and what a rule is.


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
        """Return what stands before a place, as far as a rule may look."""
        return self.text[max(0, place - 80) : place]

    def after(self, place: int) -> str:
        """Return what stands after a place, as far as a rule may look."""
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
    """Return the one mention of a whole match, none where it has no span."""
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
