"""The rules of `time_rules.toml`: how their patterns are built, and what each finds in a query."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from importlib.resources import files
from typing import Any, Literal

from ekphory.time_words.reference import (
    DAY,
    EARLIEST,
    LATEST,
    WEEK,
    Choice,
    Recurrence,
    Sessions,
    Span,
    Unit,
    find_day_start,
    find_easter,
    find_month_start,
    find_unit_start,
    move,
    shift,
    span_date,
    span_days,
    span_hours,
    span_months,
    span_unit,
)

_FILE = files(__package__) / "time_rules.toml"
DATA: Mapping[str, Any] = tomllib.loads(_FILE.read_text("utf-8"))

# Words and numbers.

_WORDS = DATA["words"]


def _number(groups: Iterable[str], first: int = 1) -> dict[str, int]:
    """Return each word of each group with the group's number."""
    return {name: place for place, group in enumerate(groups, first) for name in group.split()}


def _join_tens(tens: str, ones: str) -> dict[str, int]:
    return {
        f"{ten} {one}": 10 * place + number
        for place, ten in enumerate(tens.split(), 2)
        for number, one in enumerate(ones.split()[:9], 1)
    }


MONTHS = _number(_WORDS["months"])
WEEKDAYS = _number(_WORDS["weekdays"], first=0)
UNITS: dict[str, Unit] = {
    name: unit for unit, names in _WORDS["units"].items() for name in names.split()
}
_NUMBERS = (
    _number(_WORDS["ones"].split())
    | {word: 10 * place for place, word in enumerate(_WORDS["tens"].split(), 2)}
    | _join_tens(_WORDS["tens"], _WORDS["ones"])
)
_ORDINALS = (
    _number(_WORDS["ordinal_ones"].split())
    | {word: 10 * place for place, word in enumerate(_WORDS["ordinal_tens"].split(), 2)}
    | _join_tens(_WORDS["tens"], _WORDS["ordinal_ones"])
    | {"hundredth": 100}
)
VAGUE: dict[str, int] = _WORDS["vague"]
# Seasons and months of other languages, by the name of their list.
_ELSEWHERE: dict[str, dict[str, int]] = {
    name: {word: int(number) for word, number in (each.split("=") for each in words.split())}
    for name, words in _WORDS["elsewhere"].items()
}
_ALL_NUMBERS = (
    {word: number for words in _ELSEWHERE.values() for word, number in words.items()}
    | _NUMBERS
    | _ORDINALS
    | VAGUE
    | MONTHS
    | _WORDS["seasons"]
    | {"": 1, "a": 1, "an": 1}
)
_LISTS: dict[str, Iterable[str]] = {
    "months": MONTHS,
    "weekdays": WEEKDAYS,
    "units": UNITS,
    "numbers": _NUMBERS,
    "counts": {*_NUMBERS, *VAGUE, "a", "an"},
    "ordinals": _ORDINALS,
    "days_of_month": [word for word, number in _ORDINALS.items() if number <= 31],
    "seasons": _WORDS["seasons"],
    "holidays": _WORDS["holidays"],
    "sessions": _WORDS["sessions"].split(),
    **_ELSEWHERE,
}


def fold(text: str | None) -> str:
    """Return words as the tables have them: in lower case, with single spaces."""
    return " ".join((text or "").lower().replace("-", " ").replace(".", "").split())


def read_number(text: str | None) -> int:
    """Return what a count, an ordinal or the name of a month says; 1 for nothing and for "a"."""
    word = fold(text)
    return _ALL_NUMBERS[word] if word in _ALL_NUMBERS else int(word.rstrip("stndrh"))


# Patterns.

_NAME = re.compile(r"\{([A-Za-z_]\w*)\}")
_BRACKET = re.compile(r"(?<!\\)(?<!\(\?)\((?!\?)")


@cache
def _expand(name: str) -> str:
    if name in DATA["pieces"]:
        return _write_out(DATA["pieces"][name])
    longest_first = sorted(_LISTS[name], key=len, reverse=True)
    return "(?:" + "|".join(word.replace(" ", r"[\s-]+") for word in longest_first) + ")"


def _write_out(pattern: str) -> str:
    joined = "".join(line.lstrip() for line in pattern.splitlines())
    plain = _BRACKET.sub("(?:", joined).replace(" ", r"\s+")
    return _NAME.sub(lambda match: _expand(match[1]), plain)


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    # At the first search and not at import: all of them would take a third of a second.
    return re.compile(_write_out(pattern), re.IGNORECASE)


def compile_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of the table [patterns]."""
    return _compile(DATA["patterns"][name]["pattern"])


# What is read, and what is found in it.


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
class Query:
    """The text that is read and the local moment it was written.

    Attributes:
        text: As long as the query, with plain apostrophes and dashes.
        now: Local and naive.
    """

    text: str
    now: datetime

    def before(self, name: str, place: int) -> re.Match[str] | None:
        """Look for a pattern that ends at a place, as far as a rule may look."""
        return compile_pattern(name).search(self.text[max(0, place - 80) : place])

    def after(self, name: str, place: int) -> re.Match[str] | None:
        """Look for a pattern that begins at a place, as far as a rule may look."""
        return compile_pattern(name).match(self.text[place : place + 80])


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Which one of a recurrence is meant by a word before it, such as "last".

    Attributes:
        take: As in `Recurrence.pick`.
        confidence: That of the rule where it is 0.
        wider: Where to look if nothing lies in it.
        repeats: Whether it can also be another one.
        after: A pattern that must stand before it.
    """

    take: Choice
    confidence: float = 0.0
    wider: Literal["", "one before", "up to now"] = ""
    repeats: bool = False
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRule:
    """One way to say a time.

    Attributes:
        read: Name of the reader of its matches, in `READERS`.
        pattern: What it looks like.
        cues: Words of which the text must hold one; "0" stands for any digit.
        confidence: That a match means this time.
        with_year: The same where the match says the year; that without where it is 0.
        which: By the words before a recurrence.
        interval, wider: From a moment to another one.
        newest_first: As in `TimeReference`.
        sessions: The first and the last, as numbers or names of groups, which "-" makes negative.
        unless_asked: Whether it is nothing in a question for the time ("when did we last …").
        not_after: A pattern that must not stand before it.
        after: A pattern that must.
        beside: A pattern that must stand anywhere in the text.
        language: The code of the language it is of; empty for English, or for several.
        example, gives: A query, and what is read in it.
    """

    read: str
    pattern: str
    cues: frozenset[str]
    confidence: float
    example: str
    gives: str
    with_year: float = 0.0
    which: Mapping[str, Which]
    interval: tuple[str, str] = ("", "")
    wider: tuple[str, str] | None = None
    newest_first: bool = False
    sessions: tuple[str, str] = ("", "")
    unless_asked: bool = False
    not_after: str = ""
    after: str = ""
    beside: str = ""
    language: str = ""

    def find(self, query: Query) -> Iterator[Mention]:
        """Return what its matches mean, from left to right."""
        if self.beside and not compile_pattern(self.beside).search(query.text):
            return
        for match in _compile(self.pattern).finditer(query.text):
            yield from READERS[self.read](TimeMatch(self, match, query))


@dataclass(frozen=True, slots=True)
class TimeMatch:
    """A match of a rule."""

    rule: TimeRule
    match: re.Match[str]
    query: Query

    def __getitem__(self, group: str) -> str:
        """Return the words of a group, folded; empty where the match or the rule has none."""
        return fold(self.match[group]) if group in self.match.re.groupindex else ""

    @property
    def now(self) -> datetime:
        """The local moment of the query."""
        return self.query.now

    @property
    def unit(self) -> Unit:
        """The unit that is counted in."""
        return UNITS[self["unit"]]

    @property
    def count(self) -> int:
        """How many are counted."""
        return read_number(self["count"])

    @property
    def year(self) -> int | None:
        """The year that is named."""
        written = self["year"] or self["short"]
        return complete_year(int(written), self.now) if written else None

    def mean(
        self,
        span: Span | None,
        confidence: float = 0.0,
        *,
        wider: Span | None = None,
        sessions: Sessions | None = None,
        repeats: Unit | None = None,
        before_ongoing: bool = False,
    ) -> tuple[Mention, ...]:
        """Return the one mention of the whole match, none where it has no time."""
        if span is None and sessions is None:
            return ()
        return (
            Mention(
                start=self.match.start(),
                end=self.match.end(),
                confidence=confidence or self.rule.confidence,
                span=span,
                wider=wider,
                sessions=sessions,
                repeats=repeats,
                before_ongoing=before_ongoing,
                newest_first=self.rule.newest_first,
            ),
        )


Mentions = Sequence[Mention]

# Dates.


def complete_year(year: int, now: datetime) -> int:
    """Return the year that two digits mean: at most ten years ahead."""
    if year > 99:
        return year
    full = now.year // 100 * 100 + year
    return max(full if full <= now.year + 10 else full - 100, EARLIEST.year)


def _read_numeric_day(found: TimeMatch) -> Mentions:
    first, second = int(found["first"]), int(found["second"])
    # With dots the day comes first, with slashes the month, unless there is no such month.
    is_dotted = found.match["mark"] == "."
    is_day_first = is_dotted or first > 12
    if is_dotted and found.year is None:
        return ()
    month, day = (second, first) if is_day_first else (first, second)
    is_sure = is_day_first or second > 12 or first == second
    return _mean_days(found, month, day, day, confidence=0.9 if is_sure else 0.0)


def _read_day(found: TimeMatch) -> Mentions:
    month, first = read_number(found["month"]), read_number(found["day"])
    last = read_number(found["last"]) if found["last"] else first
    confidence = found.rule.with_year if found.year is not None else 0.0
    return _mean_days(found, month, first, last, confidence=confidence)


def _mean_days(
    found: TimeMatch, month: int, first: int, last: int, *, confidence: float
) -> tuple[Mention, ...]:
    """Read days of a month; without a year the newest whose last day has begun."""
    year = found.year
    days = Recurrence(lambda year: span_date(year, month, last), found.now.year, "year")
    end = days.pick("begun", found.now) if year is None else days.of(year)
    begin = None if end is None else span_date(end.start.year, month, first)
    if begin is None or end is None or begin.start > end.start:
        return ()
    span = Span(begin.start, end.end)
    return found.mean(span, confidence, repeats=days.every if year is None else None)


def _read_day_of_month(found: TimeMatch) -> Mentions:
    day, now = read_number(found["day"]), found.now
    current = now.year * 12 + now.month - 1
    days = Recurrence(lambda month: span_date(month // 12, month % 12 + 1, day), current, "month")
    if found["ahead"]:
        return found.mean(days.pick("ahead", now))
    return found.mean(days.pick("begun", now), repeats="month")


def _read_year(found: TimeMatch) -> Mentions:
    year = found.year
    return () if year is None else found.mean(span_months(year * 12, 12))


def _read_decade(found: TimeMatch) -> Mentions:
    start = find_month_start(complete_year(int(found["decade"]), found.now) // 10 * 120)
    if not found["part"]:
        return found.mean(Span(start, shift(start, "decade", 1)))
    first = shift(start, "year", {"early": 0, "mid": 3, "late": 6}[found["part"]])
    return found.mean(Span(first, shift(first, "year", 4)), 0.8)


# What returns.


def _find_holiday(name: str, year: int) -> Span | None:
    if not EARLIEST.year <= year < LATEST.year:
        return None
    if name == "easter":
        return span_days(find_easter(year), -2, 2)
    if name == "thanksgiving":
        return span_date(year, 11, 22 + (3 - datetime(year, 11, 1).weekday()) % 7)
    return span_date(year, *_WORDS["holidays"][name])


def _find_week(name: str, year: int) -> Span | None:
    """Return a week of the year by ISO 8601: the first one is that with 4 January."""
    first = find_unit_start("week", datetime(min(max(year, EARLIEST.year), LATEST.year), 1, 4))
    return span_unit("week", first, offset=int(name) - 1) if 1 <= int(name) <= 53 else None


def _find_months(name: str, year: int, *, step: int = 1, count: int = 1) -> Span | None:
    """Return months of the year: a month, a season, a quarter, or a half."""
    first = (read_number(name) - 1) * step
    return span_months(year * 12 + first, count) if 0 <= first < 12 else None


def _recur_in_weeks(weekday: int, days: int, now: datetime) -> Recurrence:
    first = move(find_unit_start("week", now), DAY * weekday)
    return Recurrence(lambda week: span_days(move(first, WEEK * week), 0, days), 0, "week")


def _find_recurrence(found: TimeMatch) -> Recurrence:
    now = found.now
    if found["unit"]:
        unit = found.unit
        return Recurrence(lambda number: span_unit(unit, now, offset=number), 0, unit)
    if found["weekday"]:
        return _recur_in_weeks(WEEKDAYS[found["weekday"]], 1, now)
    if found["weekend"]:
        return _recur_in_weeks(WEEKDAYS["saturday"], 2, now)
    kind = next(kind for kind in _YEARLY if found[kind])
    name, find = found[kind], _YEARLY[kind]
    return Recurrence(lambda year: find(name, year), now.year, "year")


_YEARLY: dict[str, Callable[[str, int], Span | None]] = {
    "month": _find_months,
    "season": partial(_find_months, count=3),
    "quarter": partial(_find_months, step=3, count=3),
    "half": partial(_find_months, step=6, count=6),
    "holiday": _find_holiday,
    "week": _find_week,
}


def _read_recurring(found: TimeMatch) -> Mentions:
    """Read "last May", "two Fridays ago", "the summer before last", "Christmas 2022"."""
    recurrence, now, year = _find_recurrence(found), found.now, found.year
    if year is not None:
        return found.mean(recurrence.of(year), found.rule.with_year)
    if found["before_last"]:
        return found.mean(recurrence.pick("over", now, back=1))
    if found["count"]:
        is_one = found.count > 0
        return found.mean(recurrence.pick("over", now, back=found.count - 1)) if is_one else ()
    which = found.rule.which[found["which"]]
    if not found["which"] and not _is_time(found, which.after):
        return ()
    wider = None
    if which.wider == "one before":
        wider = recurrence.pick(which.take, now, back=1)
    elif which.wider == "up to now":
        wider = _reach_back(now, found.unit, 1)
    repeats = recurrence.every if which.repeats else None
    return found.mean(
        recurrence.pick(which.take, now), which.confidence, wider=wider, repeats=repeats
    )


def _is_time(found: TimeMatch, after: str) -> bool:
    """Whether a name without a word before it is a time: not "May I", "the sun", "hot springs"."""
    query, start, end = found.query, found.match.start(), found.match.end()
    if after:
        return query.before(after, start) is not None
    if found["weekday"] and len(found["weekday"]) < 6:
        return bool(query.before("before_weekday", start) or query.after("date_after", end))
    month = found["month"]
    if len(month) >= 5 and month not in ("march", "april", "august"):
        return True
    if not month or query.before("before_month", start):
        return True
    is_led = query.before("before_name", start) or query.after("of_a_year", end)
    return bool(is_led) and found.match["month"][0].isupper()


def _read_last_weekends(found: TimeMatch) -> Mentions:
    weekends = _find_recurrence(found)
    first = weekends.pick("over", found.now, back=found.count - 1)
    last = weekends.pick("over", found.now)
    if first is None or last is None or not found.count:
        return ()
    return found.mean(Span(first.start, last.end))


# Times counted from now.


def span_part_of_day(day: datetime, part: str) -> Span:
    """Return the morning, afternoon, evening or night of a day."""
    return span_hours(day, *_WORDS["parts_of_day"][part])


def _read_interval(found: TimeMatch) -> Mentions:
    rule, wider = found.rule, found.rule.wider
    return found.mean(
        _span_between(rule.interval, found.now),
        wider=_span_between(wider, found.now) if wider else None,
    )


def _span_between(ends: tuple[str, str], now: datetime) -> Span:
    start, end = ends
    return Span(_read_moment(start, now) if start else datetime.min, _read_moment(end, now))


def _read_moment(text: str, now: datetime) -> datetime:
    """Return what the rules write as "now" or "today -14 days"."""
    anchor, *step = text.split()
    moment = now if anchor == "now" else find_day_start(now)
    return shift(moment, UNITS[step[1]], int(step[0])) if step else moment


def _read_part_of_day(found: TimeMatch) -> Mentions:
    day = move(found.now, -DAY) if found["last"] else found.now
    return found.mean(span_part_of_day(day, found["part"] or "night"), wider=span_days(day))


def _read_earlier(found: TimeMatch) -> Mentions:
    now, name = found.now, found["unit"]
    if name in ("week", "month", "year"):
        span = span_unit(found.unit, now)
        ended = Span(span.start, find_day_start(now))
        return found.mean(ended if span.start != ended.end else span, 0.85, wider=span)
    today = Span(find_day_start(now), now)
    span = span_part_of_day(now, name) if name in _WORDS["parts_of_day"] else today
    return found.mean(Span(span.start, min(span.end, now)), wider=today, before_ongoing=True)


def _read_ago(found: TimeMatch) -> Mentions:
    now, unit, about = found.now, found.unit, found["about"]
    is_half = found["count"].startswith("half")
    count = 1 if is_half else found.count
    if (is_half or found["half"]) and unit == "year":
        unit, count = "month", 6 if is_half else count * 12 + 6
    moment = shift(now, unit, -count)
    if about in ("more than", "over", "at least"):
        return found.mean(Span(end=moment), 0.8)
    if about in ("less than", "under", "within"):
        return found.mean(Span(moment, now), 0.8)
    wider = _widen(moment, unit)
    if found["count"] in VAGUE or is_half or found["half"]:
        return found.mean(_surround(moment, unit), 0.65, wider=wider)
    return found.mean(_hold(moment, unit), 0.8 if about else 0.0, wider=wider)


def _read_between_ago(found: TimeMatch) -> Mentions:
    newest, oldest = (
        _hold(shift(found.now, found.unit, -count), found.unit)
        for count in sorted((found.count, read_number(found["other"])))
    )
    return found.mean(Span(oldest.start, newest.end))


def _read_ahead(found: TimeMatch) -> Mentions:
    return found.mean(_hold(shift(found.now, found.unit, found.count), found.unit))


# Months on both sides of a moment that is counted roughly.
_ROUGH_MONTHS = {"month": 1, "quarter": 2, "year": 6, "decade": 60}


def _hold(moment: datetime, unit: Unit) -> Span:
    """Return the day, month or year of the calendar; weeks lie around the moment."""
    if unit == "day" or unit in _ROUGH_MONTHS:
        return span_unit(unit, moment)
    return _surround(moment, unit)


def _surround(moment: datetime, unit: Unit) -> Span:
    if unit == "day":
        return span_days(moment, -1, 2)
    if unit in ("week", "fortnight"):
        return span_days(moment, -3, 4)
    if unit in _ROUGH_MONTHS:
        months = _ROUGH_MONTHS[unit]
        return Span(shift(moment, "month", -months), shift(moment, "month", months))
    half = (shift(moment, unit, 1) - moment) / 2
    return Span(move(moment, -half), move(moment, half))


def _widen(moment: datetime, unit: Unit) -> Span:
    """Where a rough count may lie: days counted in full 24 hours can be those of the day before."""
    if unit == "day":
        return span_days(moment, -1, 1)
    return Span(shift(moment, unit, -1), shift(moment, unit, 1))


def _read_trailing(found: TimeMatch) -> Mentions:
    confidence = 0.8 if found["count"] in VAGUE else 0.0
    wider = _reach_back(found.now, found.unit, 2 * found.count)
    return found.mean(_reach_back(found.now, found.unit, found.count), confidence, wider=wider)


def _reach_back(now: datetime, unit: Unit, count: int) -> Span:
    """Return the time up to now that began so many units ago; longer than hours, whole days."""
    start = shift(now, unit, -count)
    return Span(start if unit in ("second", "minute", "hour") else find_day_start(start), now)


def _read_so_far(found: TimeMatch) -> Mentions:
    unit = UNITS[found["unit"] or found["dated"]]
    return found.mean(Span(find_unit_start(unit, found.now), found.now))


# Years in other languages.


def _read_elsewhere(found: TimeMatch) -> Mentions:
    """Read a year, a month or season of one, or several years; or what lies on one side of it."""
    year = found.year
    if year is None or not _stands_right(found):
        return ()
    is_within = found["season"] or found["month"]
    span = _find_recurrence(found).of(year) if is_within else span_months(year * 12, 12)
    if span is None:
        return ()
    if found["last"]:
        last = span_months(int(found["last"]) * 12, 12)
        return found.mean(Span(span.start, last.end)) if span.start < last.start else ()
    return found.mean(_open_elsewhere(span, found))


def _stands_right(found: TimeMatch) -> bool:
    rule, query, start = found.rule, found.query, found.match.start()
    if rule.after and not query.before(rule.after, start):
        return False
    return not rule.not_after or query.before(rule.not_after, start) is None


def _open_elsewhere(span: Span, found: TimeMatch) -> Span:
    side = found.query.before("side_elsewhere", found.match.start()) or found.query.after(
        "side_after_elsewhere", found.match.end()
    )
    if side is None:
        return span
    if side["before"]:
        return Span(end=span.start)
    return Span(start=span.end if side["after"] else span.start)


# Sessions.


def _read_sessions(found: TimeMatch) -> Mentions:
    rule, query, start = found.rule, found.query, found.match.start()
    # "When did we last talk about the dog?" asks for the time; "When did we last talk?", with
    # nothing more in it, is answered by that session.
    is_more = not query.after("no_more", found.match.end())
    if rule.unless_asked and is_more and query.before("asked_when", start):
        return ()
    if rule.not_after and query.before(rule.not_after, start):
        return ()
    first, last = (_read_session(each, found) for each in rule.sessions)
    return found.mean(None, sessions=Sessions(first, last)) if first and last else ()


def _read_session(written: str, found: TimeMatch) -> int:
    name = written.removeprefix("-")
    number = int(name) if name.isdecimal() else read_number(found[name])
    return -number if written.startswith("-") else number


def _read_session_list(found: TimeMatch) -> Mentions:
    """Read "2, 3 and 5" as three of them, "1 to 3 and 5" as a range and one more."""
    first = read_number(found["nth"])
    ranges, others, done = [(first, first)], found.match["others"], 0
    following = list(_compile("{ORDINAL}|{NUMBER}").finditer(others))
    is_range = len(following) == 1 and found.query.before("between_sessions", found.match.start())
    for each in following:
        number = read_number(each[0])
        if compile_pattern("listed_apart").search(others[done : each.start()]) and not is_range:
            ranges.append((number, number))
        else:
            ranges[-1] = (ranges[-1][0], number)
        done = each.end()
    if any(min(ends) < 1 for ends in ranges):
        return ()
    sessions = (Sessions(min(ends), max(ends)) for ends in dict.fromkeys(ranges))
    return [mention for each in sessions for mention in found.mean(None, sessions=each)]


def _read_event(found: TimeMatch) -> Mentions:
    place = found.match
    return (Mention(start=place.start(), end=place.end(), confidence=found.rule.confidence),)


READERS: Mapping[str, Callable[[TimeMatch], Mentions]] = {
    "ago": _read_ago,
    "ahead": _read_ahead,
    "between_ago": _read_between_ago,
    "day": _read_day,
    "day_of_month": _read_day_of_month,
    "decade": _read_decade,
    "earlier": _read_earlier,
    "elsewhere": _read_elsewhere,
    "event": _read_event,
    "interval": _read_interval,
    "last_weekends": _read_last_weekends,
    "numeric_day": _read_numeric_day,
    "part_of_day": _read_part_of_day,
    "recurring": _read_recurring,
    "session_list": _read_session_list,
    "sessions": _read_sessions,
    "so_far": _read_so_far,
    "trailing": _read_trailing,
    "year": _read_year,
}


def _read_rule(row: Mapping[str, Any]) -> TimeRule:
    cues = _NAME.sub(lambda match: " ".join(_LISTS[match[1]]), row["cues"])
    which = {
        words.strip(): Which(**{name: value for name, value in each.items() if name != "words"})
        for each in row.get("which", ())
        for words in each["words"].split(",")
    }
    return TimeRule(**{**row, "cues": frozenset(cues.split()), "which": which})


RULES = tuple(_read_rule(row) for row in DATA["rule"])
EVENT_RULES = tuple(_read_rule(row) for row in DATA["event"])
ELSEWHERE_RULES = tuple(_read_rule(row) for row in DATA["elsewhere"])
