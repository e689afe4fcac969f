"""Dates of the calendar and weekdays: "2023-05-08", "in May", "last Tuesday"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ekphory.time_words.reference import (
    BEFORE_LAST,
    COUNT,
    DAY,
    DAY_OF_MONTH,
    EARLIEST,
    MONTH,
    MONTHS,
    ORDINAL,
    UNIT,
    WEEKDAY,
    WEEKDAY_NAME,
    WEEKDAYS,
    YEAR,
    Mention,
    Reader,
    Rule,
    Span,
    Unit,
    count_of,
    dated,
    day_span,
    day_start,
    length,
    mention,
    month_number,
    month_start,
    moved,
    ordinal_of,
    rule,
    shifted,
    unit_span,
    unit_start,
    weekday_number,
)
from ekphory.time_words.sessions import SESSION

# Dates of the calendar, whole and in part: "2023-05-08", "May 8th", "in May", "2022".

Mentions = tuple[Mention, ...]

# "In '12 Angry Men'" is a film and no year; "in '23 I moved" is one.
_NO_TITLE = r"(?!\s+(?-i:(?!I\b)[A-Z])|.{0,80}?[\w.?!]'(?!\w))"
YEAR_TAIL = (
    rf"(?:\s*,?\s+(?:of\s+|in\s+)?(?P<year>{YEAR})"
    rf"|\s*,?\s*(?:of\s+|(?P<within>in\s+))?'(?P<short>\d\d)\b(?(within){_NO_TITLE}))?"
)
"""After a name that returns every year: "2022", "of '22"."""
_NOT_A_COUNT = rf"(?!\s*(?:{UNIT}|{MONTH}|(?:am|pm|a\.m|p\.m|sessions?|times|people|%)\b|[:/.]\d))"
_TO = r"\s*(?:-|to|through|thru|until|till|and)\s*(?:the\s+)?"
_ENDS = r"(?=\s*(?:[?.!,;]|\Z|(?:of|in)\s+(?:this|last|the|next)\b))"
_MONTH_CUES = " ".join(MONTHS)
_NAMES_OF_PEOPLE = frozenset("may march april june august jan mar".split())
_SURE = re.compile(
    r"\b(?:in|during|since|until|till|throughout|of|by|early|mid|late)[\s-]+\Z", re.I
)
_FAIR = re.compile(
    r"\b(?:before|after|around|between|for|over|about|(?:(?:from|between)\s+\w+(?:\s+\d{4})?\s+"
    r"(?:and|to|until|till|through|-))|from|(?:last|this|previous)\s+year,?)\s+\Z",
    re.I,
)
_OF_A_YEAR = re.compile(r"\s*,?\s+(?:of\s+)?(?:last|this|the\s+previous)\s+year\b", re.I)


def occurrence(now: datetime, month: int, day: int, *, year: int | None) -> Span | None:
    """Return that day of the year; without a year the newest that has begun."""
    if year is not None:
        return dated(year, month, day)
    # Eight years back there was a 29 February, even across 1900.
    for earlier in range(9):
        span = dated(now.year - earlier, month, day)
        if span is not None and span.start is not None and span.start <= now:
            return span
    return None


def month_occurrence(now: datetime, month: int, *, year: int | None) -> Span:
    """Return that month of the year; without a year the newest that has begun."""
    chosen = year if year is not None else now.year - (month > now.month)
    return unit_span("month", month_start(chosen * 12 + month - 1))


def _iso(match: re.Match[str], reader: Reader) -> Mentions:
    del reader
    year, month, day = int(match["year"]), int(match["month"]), match["day"]
    if day is not None:
        return mention(match, dated(year, month, int(day)), 0.97)
    if not 1 <= month <= 12:
        return ()
    return mention(match, unit_span("month", month_start(year * 12 + month - 1)), 0.9)


def _numeric(match: re.Match[str], reader: Reader) -> Mentions:
    first, second, year = int(match["first"]), int(match["second"]), match["year"]
    full = None if year is None else _full_year(int(year), reader.now)
    # With dots the day comes first, with slashes the month, unless there is no such month.
    month, day = (second, first) if match["mark"] == "." or first > 12 else (first, second)
    sure = match["mark"] == "." or first > 12 or second > 12 or first == second
    if full is None and match["mark"] == ".":
        return ()
    span = occurrence(reader.now, month, day, year=full)
    return mention(match, span, 0.9 if sure else 0.7, repeats=None if full else "year")


def _full_year(year: int, now: datetime) -> int:
    if year > 99:
        return year
    century = now.year // 100 * 100
    full = century + year if century + year <= now.year + 10 else century - 100 + year
    return max(full, EARLIEST.year)


def year_of(match: re.Match[str], reader: Reader) -> int | None:
    """Return the year that `YEAR_TAIL` found."""
    if match["year"] is not None:
        return int(match["year"])
    return None if match["short"] is None else _full_year(int(match["short"]), reader.now)


def _day(match: re.Match[str], reader: Reader) -> Mentions:
    year = year_of(match, reader)
    month, day = month_number(match["month"]), ordinal_of(match["day"])
    span = occurrence(reader.now, month, day, year=year)
    return mention(
        match, span, 0.97 if year else 0.93, repeats=None if year is not None else "year"
    )


def _days(match: re.Match[str], reader: Reader) -> Mentions:
    year, month = year_of(match, reader), month_number(match["month"])
    last = occurrence(reader.now, month, ordinal_of(match["last"]), year=year)
    if last is None or last.start is None:
        return ()
    first = dated(last.start.year, month, ordinal_of(match["day"]))
    if first is None or first.start is None or first.start > last.start:
        return ()
    span = Span(first.start, last.end)
    return mention(match, span, 0.93, repeats=None if year is not None else "year")


def _month(match: re.Match[str], reader: Reader) -> Mentions:
    year, which, name = year_of(match, reader), match["which"], match["month"].lower()
    before = reader.before(match.start())
    if year is None and which is None and not _SURE.search(before):
        is_common = name.rstrip(".") in _NAMES_OF_PEOPLE or len(name.rstrip(".")) < 5
        is_fair = _FAIR.search(before) or _OF_A_YEAR.match(reader.after(match.end()))
        if is_common and not (is_fair and match["month"][0].isupper()):
            return ()
    month, now = month_number(name), reader.now
    span = month_occurrence(now, month, year=now.year if which == "this" else year)
    if which in ("last", "past", "previous") and span.end is not None and span.end > now:
        span = month_occurrence(now, month, year=now.year - 1)
    if which in ("next", "coming"):
        span = month_occurrence(now, month, year=now.year + (month <= now.month))
    is_open = year is None and which is None
    return mention(match, span, 0.92, repeats="year" if is_open else None)


def _day_alone(match: re.Match[str], reader: Reader) -> Mentions:
    day = ordinal_of(match["day"])
    this_month = unit_start("month", reader.now)
    for earlier in range(3):
        start = shifted(this_month, "month", -earlier)
        span = dated(start.year, start.month, day)
        if span is not None and span.start is not None and span.start <= reader.now:
            return mention(match, span, 0.7, repeats="month")
    return ()


def _day_beside_weekday(match: re.Match[str], reader: Reader) -> Mentions:
    if match["ahead"] is None:
        return _day_alone(match, reader)
    this_month = unit_start("month", reader.now)
    for later in range(3):
        start = shifted(this_month, "month", later)
        span = dated(start.year, start.month, ordinal_of(match["day"]))
        if span is not None and span.start is not None and span.start > reader.now:
            return mention(match, span, 0.7)
    return ()


def _years(match: re.Match[str], reader: Reader) -> Mentions:
    year = year_of(match, reader)
    return () if year is None else mention(match, unit_span("year", datetime(year, 1, 1)), 0.9)


def _decade(match: re.Match[str], reader: Reader) -> Mentions:
    first_year = _full_year(int(match["decade"]), reader.now) // 10 * 10
    start = datetime(max(first_year, EARLIEST.year), 1, 1)
    part = match["part"]
    if part is None:
        return mention(match, unit_span("decade", start), 0.85)
    first = {"early": 0, "mid": 3, "late": 6}[part.lower()]
    return mention(
        match, Span(shifted(start, "year", first), shifted(start, "year", first + 4)), 0.8
    )


def _quarter(match: re.Match[str], reader: Reader) -> Mentions:
    number = int(match["number"]) if match["number"] else ordinal_of(match["ordinal"])
    year, months = year_of(match, reader), 6 if (match["half"] or "q")[0] in "hH" else 3
    if not 1 <= number <= 12 // months:
        return ()
    begins = (number - 1) * months
    chosen = year if year is not None else reader.now.year - (begins + 1 > reader.now.month)
    start = month_start(chosen * 12 + begins)
    return mention(match, Span(start, shifted(start, "month", months)), 0.85, repeats="year")


def _week_number(match: re.Match[str], reader: Reader) -> Mentions:
    year, number = year_of(match, reader), int(match["number"])
    if not 1 <= number <= 53:
        return ()
    chosen = reader.now.year if year is None else year
    # ISO 8601: the first week is the one with 4 January.
    start = shifted(unit_start("week", datetime(max(chosen, 2), 1, 4)), "week", number - 1)
    if year is None and start > reader.now:
        start = shifted(unit_start("week", datetime(max(chosen - 1, 2), 1, 4)), "week", number - 1)
    return mention(match, Span(start, moved(start, shifted(start, "week", 1) - start)), 0.8)


DATE_RULES: tuple[Rule, ...] = (
    rule(
        "0",
        r"\b(?P<year>(?:19|20)\d\d)[-/](?P<month>\d\d)(?:[-/](?P<day>\d\d))?(?!\d|-\d)"
        r"(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?",
        _iso,
    ),
    rule(
        "0",
        r"(?<![\d./])(?P<first>\d\d?)(?P<mark>[./])(?P<second>\d\d?)"
        r"(?:(?P=mark)(?P<year>\d{4}|\d\d))?(?![\d/]|\.\d)",
        _numeric,
    ),
    rule(
        _MONTH_CUES,
        rf"\b(?P<month>{MONTH})\s+(?:the\s+)?(?P<day>{DAY_OF_MONTH})"
        rf"{_TO}(?P<last>{DAY_OF_MONTH}){_NOT_A_COUNT}{YEAR_TAIL}",
        _days,
    ),
    rule(
        _MONTH_CUES,
        rf"\b(?P<day>{DAY_OF_MONTH}){_TO}(?P<last>{DAY_OF_MONTH})\s+(?:of\s+)?"
        rf"(?P<month>{MONTH}){YEAR_TAIL}",
        _days,
    ),
    rule(
        _MONTH_CUES,
        rf"\b(?P<month>{MONTH})\s+(?:the\s+)?(?P<day>{DAY_OF_MONTH}){_NOT_A_COUNT}{YEAR_TAIL}",
        _day,
    ),
    rule(
        _MONTH_CUES,
        rf"\b(?P<day>{DAY_OF_MONTH})\s+(?:of\s+|day\s+of\s+)?(?P<month>{MONTH}){YEAR_TAIL}",
        _day,
    ),
    rule(
        _MONTH_CUES,
        rf"\b(?:(?P<which>last|this|past|previous|next|coming)\s+)?(?P<month>{MONTH}){YEAR_TAIL}"
        r"(?!\s+\d{1,2}\b(?!:))",
        _month,
    ),
    rule(
        "0 " + "first second third fourth fifth tenth",
        rf"(?<=\bon )(?:the\s+)?(?P<day>\d{{1,2}}(?:st|nd|rd|th)|{ORDINAL}){_ENDS}",
        _day_alone,
    ),
    rule(
        "0",
        r"\bthe\s+(?P<day>\d{1,2}(?:st|nd|rd|th))\s+(?:of\s+)(?=(?:this|last|next)\s+month)",
        _day_alone,
    ),
    rule(
        "0",
        rf"\b(?P<ahead>(?:next|coming|upcoming)\s+)?{WEEKDAY}\s*,?\s+(?P<the>the\s+)?"
        r"(?P<day>\d{1,2}(?:st|nd|rd|th))\b"
        # "Sunday, 2nd prize" is a rank.
        rf"(?(the)(?!\s+(?:(?:of\s+)?{MONTH}|{SESSION}|time\b))|{_ENDS})",
        _day_beside_weekday,
    ),
    rule(
        "0",
        rf"(?:(?<=\bin )|(?<=\bof )|(?<=\bsince )|(?<=\bduring )|(?<=\bbefore )|(?<=\bafter )"
        r"|(?<=\buntil )|(?<=\bby )|(?<=\bfrom )|(?<=\bbetween )|(?<=\bthroughout )|(?<=\byear )"
        rf"|(?<=\band )|(?<=\bto )|(?<=\bthrough )|(?<=\bfor )|(?<=\bearly )|(?<=\blate )"
        rf"|(?<=\bmid-))(?:(?P<year>{YEAR})(?![-/.:]\d|\s*(?:{UNIT}|people\b))"
        rf"|'(?P<short>\d\d)(?![\w']){_NO_TITLE})",
        _years,
    ),
    rule(
        "0 1960s 1970s 1980s 1990s 2000s 2010s 2020s",
        r"\b(?:the\s+)?(?:(?P<part>early|mid|late)[\s-]+)?(?P<decade>(?:(?:19|20)\d|[2-9])0)'?s\b",
        _decade,
    ),
    rule(
        "0 quarter half q1 q2 q3 q4 h1 h2",
        rf"\b(?:(?P<half>[qh])(?P<number>[1-4])|(?:the\s+)?(?P<ordinal>{ORDINAL})\s+"
        rf"quarter){YEAR_TAIL}(?![-\w])",
        _quarter,
    ),
    rule(
        "week cw kw",
        rf"\b(?:(?:calendar\s+)?week\s+(?:number\s+|no\.?\s*|#)?|[ck]w\s*)(?P<number>\d\d?)\b"
        rf"(?!\s*(?:{UNIT}|{MONTH}))(?:{YEAR_TAIL}|\s*/\s*(?P<other>{YEAR}))",
        _week_number,
    ),
)


# Weekdays and weekends: "last Tuesday", "on Friday", "two Sundays ago", "the weekend".

_WEEK = 7 * DAY
_SHORT_NEEDS = re.compile(r"\b(?:on|by|since|until|till|before|after|from|to|and)\s+\Z", re.I)
_OR_A_DATE = re.compile(rf"\s*,?\s+(?:{MONTH}\s+\d|\d{{1,2}}(?:st|nd|rd|th)?\s+{MONTH})", re.I)


def latest_weekday(now: datetime, weekday: int) -> datetime:
    """Return the midnight of the last such day before today."""
    back = (now.weekday() - weekday) % 7 or 7
    return moved(day_start(now), -DAY * back)


def _named(match: re.Match[str], reader: Reader) -> tuple[Mention, ...]:
    weekday, which = weekday_number(match["weekday"]), (match["which"] or "").lower()
    name = match["weekday"].rstrip(".")
    if len(name) < 6 and not which and not _is_day(match, reader):
        return ()
    if which.startswith("this") and "past" not in which and "last" not in which:
        start = moved(unit_start("week", reader.now), DAY * weekday)
        return mention(match, day_span(start), 0.8)
    start = latest_weekday(reader.now, weekday)
    if which in ("next", "coming", "this coming", "upcoming"):
        return mention(match, day_span(moved(start, _WEEK)), 0.8)
    if match["before_last"]:
        return mention(match, day_span(moved(start, -_WEEK)), 0.85)
    earlier = day_span(moved(start, -_WEEK))
    repeats: Unit | None = None if which else "week"
    return mention(match, day_span(start), 0.9 if which else 0.85, wider=earlier, repeats=repeats)


def _is_day(match: re.Match[str], reader: Reader) -> bool:
    """Whether an abbreviation, which may be another word ("sat", "sun"), stands for a weekday."""
    if _SHORT_NEEDS.search(reader.before(match.start())):
        return True
    return _OR_A_DATE.match(reader.after(match.end())) is not None


def _ago(match: re.Match[str], reader: Reader) -> tuple[Mention, ...]:
    start = latest_weekday(reader.now, weekday_number(match["weekday"].removesuffix("s")))
    return mention(match, day_span(moved(start, -_WEEK * (count_of(match["count"]) - 1))), 0.85)


def _weekend(match: re.Match[str], reader: Reader) -> tuple[Mention, ...]:
    which, saturday = match["which"].lower(), moved(unit_start("week", reader.now), 5 * DAY)
    if which in ("next", "the coming", "the upcoming"):
        ahead = saturday if reader.now < saturday else moved(saturday, _WEEK)
        return mention(match, _two_days(ahead), 0.8)
    if which == "this" and match["past"] is None:
        return mention(match, _two_days(saturday), 0.85, wider=_two_days(moved(saturday, -_WEEK)))
    # Within a weekend "the weekend" is the present one, "last weekend" the one before.
    is_on = which == "the" and saturday <= reader.now
    back = 0 if is_on else 1 + bool(match["before_last"])
    start = moved(saturday, -_WEEK * back)
    return mention(match, _two_days(start), 0.85, wider=_two_days(moved(start, -_WEEK)))


def _weekends_ago(match: re.Match[str], reader: Reader) -> tuple[Mention, ...]:
    saturday = moved(unit_start("week", reader.now), 5 * DAY)
    return mention(match, _two_days(moved(saturday, -_WEEK * count_of(match["count"]))), 0.85)


def _last_weekends(match: re.Match[str], reader: Reader) -> tuple[Mention, ...]:
    saturday = moved(unit_start("week", reader.now), 5 * DAY)
    first = moved(saturday, -_WEEK * count_of(match["count"]))
    span = Span(first, _two_days(moved(saturday, -_WEEK)).end)
    return mention(match, span, 0.8) if first < saturday else ()


def _two_days(start: datetime) -> Span:
    return day_span(start, days=2)


_CUES = " ".join(WEEKDAYS)
WEEKDAY_RULES: tuple[Rule, ...] = (
    rule(
        _CUES,
        r"\b(?:(?:the\s+)?(?P<which>this\s+past|this\s+last|this\s+coming|last|past|previous|this|"
        r"next|coming|upcoming)\s+)?(?<!every )(?<!each )"
        rf"(?:the\s+)?(?P<weekday>{WEEKDAY})(?!s)(?P<before_last>\s+{BEFORE_LAST})?",
        _named,
    ),
    rule(
        " ".join(f"{day} {day}s" for day in WEEKDAYS),
        rf"\b(?P<count>{COUNT})\s+(?P<weekday>{WEEKDAY_NAME}s?)\s+(?:ago|back)\b",
        _ago,
    ),
    rule(
        "weekend",
        r"\b(?P<which>this|last|next|(?:this\s+)?past|previous|the\s+(?:coming|upcoming)|the)\s+"
        r"(?P<past>(?:last|past|previous)\s+)?weekend\b(?!\s+of\b)"
        rf"(?P<before_last>\s+{BEFORE_LAST})?",
        _weekend,
    ),
    rule(
        "weekends",
        rf"\b(?:last|past|previous)\s+(?P<count>{COUNT})\s+weekends\b",
        _last_weekends,
    ),
    rule("weekends weekend", rf"\b(?P<count>{COUNT})\s+weekends?\s+(?:ago|back)\b", _weekends_ago),
)


# A weekday beside a date: "Wednesday, May 1", "May 1 (a Friday)". It says the date once more.

_WEEKDAY = re.compile(rf"(?:[a-z]+\s+){{0,3}}{WEEKDAY}\Z", re.I)
_THEN_DATE = re.compile(r"\s*,?\s*(?:(?:on\s+)?the\s+)?\Z", re.I)
_THEN_WEEKDAY = re.compile(r"\s*,?\s*\(?\s*(?:(?:which\s+)?(?:is|was)\s+)?(?:an?\s+)?\Z", re.I)


def join_named_weekdays(mentions: Sequence[Mention], reader: Reader) -> list[Mention]:
    """Join each date with the weekday beside it, and keep the date's time."""
    done: list[Mention] = []
    for each in mentions:
        joined = _joined(done[-1], each, reader) if done else None
        if joined is None:
            done.append(each)
        else:
            done[-1] = joined
    return done


def _joined(first: Mention, second: Mention, reader: Reader) -> Mention | None:
    between = reader.text[first.end : second.start][:40]
    if _is_weekday(first, reader) and _is_date(second, reader) and _THEN_DATE.match(between):
        return replace(second, start=first.start)
    if _is_date(first, reader) and _is_weekday(second, reader) and _THEN_WEEKDAY.match(between):
        is_closed = "(" in between and reader.text.startswith(")", second.end)
        return replace(first, end=second.end + is_closed)
    return None


def _is_weekday(mention: Mention, reader: Reader) -> bool:
    return _WEEKDAY.match(reader.text[mention.start : mention.end]) is not None


def _is_date(mention: Mention, reader: Reader) -> bool:
    if mention.span is None or length(mention.span) != DAY or _is_weekday(mention, reader):
        return False
    has_digit = any(letter.isdecimal() for letter in reader.text[mention.start : mention.end])
    return has_digit or mention.repeats in ("month", "year")
