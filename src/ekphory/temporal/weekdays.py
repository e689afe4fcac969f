"""Weekdays and weekends: "last Tuesday", "on Friday", "two Sundays ago", "the weekend"."""

from __future__ import annotations

import re
from datetime import datetime

from ekphory.temporal.almanac import DAY, Span, Unit, day_span, day_start, moved, unit_start
from ekphory.temporal.mention import Mention, Reader, Rule, mention, rule
from ekphory.temporal.vocabulary import (
    BEFORE_LAST,
    COUNT,
    MONTH,
    WEEKDAY,
    WEEKDAY_NAME,
    WEEKDAYS,
    count_of,
    weekday_number,
)

_WEEK = 7 * DAY
_SHORT_NEEDS = re.compile(r"\b(?:on|by|since|until|till|before|after|from|to|and)\s+\Z", re.I)
_OR_A_DATE = re.compile(rf"\s*,?\s+(?:{MONTH}\s+\d|\d{{1,2}}(?:st|nd|rd|th)?\s+{MONTH})", re.I)


def latest_weekday(now: datetime, weekday: int) -> datetime:
    """Give the midnight of the last such day before today."""
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
RULES: tuple[Rule, ...] = (
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
