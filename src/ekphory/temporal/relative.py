"""Times counted from now: "yesterday", "3 days ago", "last month", "over the last week"."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta

from ekphory.temporal.almanac import (
    DAY,
    Span,
    Unit,
    day_span,
    day_start,
    moved,
    shifted,
    unit_span,
    unit_start,
)
from ekphory.temporal.mention import Mention, Reader, Rule, mention, rule
from ekphory.temporal.vocabulary import (
    BEFORE_LAST,
    COUNT,
    UNIT,
    UNITS,
    count_of,
    is_exact,
    step_of,
    unit_of,
)

Mentions = tuple[Mention, ...]

_HOURS = {"morning": (0, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 30)}
"""Parts of the day by the hour; a night ends the next morning."""
_DAYS = {
    "today": 0,
    "yesterday": -1,
    "tomorrow": 1,
    "the day before yesterday": -2,
    "day before yesterday": -2,
    "the day after tomorrow": 2,
    "day after tomorrow": 2,
}
_LARGE: tuple[Unit, ...] = ("month", "quarter", "year", "decade")


def part_of_day(day: datetime, part: str) -> Span:
    """Give the morning, afternoon, evening or night of a day."""
    first, last = _HOURS[part]
    midnight = day_start(day)
    return Span(moved(midnight, timedelta(hours=first)), moved(midnight, timedelta(hours=last)))


def _day(match: re.Match[str], reader: Reader) -> Mentions:
    offset = _DAYS[" ".join(match[0].lower().split())]
    return mention(match, day_span(moved(reader.now, DAY * offset)), 0.93)


def _part_of_today(match: re.Match[str], reader: Reader) -> Mentions:
    name = (match["part"] or "night").lower()
    if match["last"]:
        span = part_of_day(moved(reader.now, -DAY), name)
        return mention(match, span, 0.85, wider=day_span(moved(reader.now, -DAY)))
    return mention(match, part_of_day(reader.now, name), 0.85, wider=day_span(reader.now))


def _earlier(match: re.Match[str], reader: Reader) -> Mentions:
    now, name = reader.now, match["unit"].lower()
    if name in UNITS and name != "day":
        span = unit_span(UNITS[name], now)
        ended = Span(span.start, day_start(now))
        return mention(match, ended if span.start != ended.end else span, 0.85, wider=span)
    today = Span(day_start(now), now)
    span = part_of_day(now, name) if name in _HOURS else today
    found = mention(match, Span(span.start, min(span.end or now, now)), 0.88, wider=today)
    return tuple(replace(each, before_ongoing=True) for each in found)


def _ago(match: re.Match[str], reader: Reader) -> Mentions:
    unit, half = unit_of(match["unit"]), (match["count"] or "").lower().startswith("half")
    count = 1 if half else count_of(match["count"])
    if (half or match["half"]) and unit == "year":
        unit, count = "month", 6 if half else count * 12 + 6
    about = (match["about"] or "").lower()
    moment = shifted(reader.now, unit, -count)
    if about in ("more than", "over", "at least"):
        return mention(match, Span(None, moment), 0.8)
    if about in ("less than", "under", "within"):
        return mention(match, Span(moment, reader.now), 0.8)
    exact = is_exact(match["count"]) and not half and not match["half"]
    near = _near(moment, unit)
    if not exact:
        return mention(match, _around(moment, unit), 0.65, wider=_wide(moment, unit))
    return mention(match, near, 0.92 if not about else 0.8, wider=_wide(moment, unit))


def _between_ago(match: re.Match[str], reader: Reader) -> Mentions:
    unit = unit_of(match["unit"])
    counts = sorted((count_of(match["count"]), count_of(match["other"])))
    newest, oldest = (_near(shifted(reader.now, unit, -count), unit) for count in counts)
    return mention(match, Span(oldest.start, newest.end), 0.85)


def _near(moment: datetime, unit: Unit) -> Span:
    """Days, months and years are those of the calendar; weeks lie around the moment."""
    if unit == "day" or unit in _LARGE:
        return unit_span(unit, moment)
    return _around(moment, unit)


def _around(moment: datetime, unit: Unit) -> Span:
    if unit == "day":
        return Span(day_start(moved(moment, -DAY)), day_start(moved(moment, 2 * DAY)))
    if unit in ("week", "fortnight"):
        return Span(day_start(moved(moment, -3 * DAY)), day_start(moved(moment, 4 * DAY)))
    if unit in _LARGE:
        months = {"month": 1, "quarter": 2, "year": 6, "decade": 60}[unit]
        return Span(shifted(moment, "month", -months), shifted(moment, "month", months))
    half = shifted(moment, unit, 1) - moment
    return Span(moved(moment, -half / 2), moved(moment, half / 2))


def _wide(moment: datetime, unit: Unit) -> Span:
    """Where a rough count may lie: days counted in full 24 hours can be those of the day before."""
    if unit == "day":
        return Span(day_start(moved(moment, -DAY)), unit_span("day", moment).end)
    return Span(shifted(moment, unit, -1), shifted(moment, unit, 1))


def _which(match: re.Match[str], reader: Reader) -> Mentions:
    which, unit = match["which"].lower(), unit_of(match["unit"])
    if which in ("this", "current", "the same"):
        return mention(match, unit_span(unit, reader.now), 0.92)
    if which in ("next", "coming", "following", "upcoming"):
        return mention(match, unit_span(unit, reader.now, offset=1), 0.8)
    back = 2 if match["before_last"] else 1
    wider = trailing(reader.now, unit, 1) if back == 1 else None
    span = unit_span(unit, reader.now, offset=-back)
    return mention(match, span, 0.92, wider=wider)


def _before(match: re.Match[str], reader: Reader) -> Mentions:
    step = step_of(match["side"])
    return mention(match, unit_span(unit_of(match["unit"]), reader.now, offset=step), 0.6)


def _before_last(match: re.Match[str], reader: Reader) -> Mentions:
    return mention(match, unit_span(unit_of(match["unit"]), reader.now, offset=-2), 0.88)


def _trailing(match: re.Match[str], reader: Reader) -> Mentions:
    count, unit = count_of(match["count"]), unit_of(match["unit"])
    wider = trailing(reader.now, unit, 2 * count)
    confidence = 0.9 if is_exact(match["count"]) else 0.8
    return mention(match, trailing(reader.now, unit, count), confidence, wider=wider)


def _trailing_one(match: re.Match[str], reader: Reader) -> Mentions:
    unit = unit_of(match["unit"])
    span, wider = trailing(reader.now, unit, 1), trailing(reader.now, unit, 2)
    return mention(match, span, 0.9, wider=wider)


def trailing(now: datetime, unit: Unit, count: int) -> Span:
    """Give the time up to now that began so many units ago; longer than hours, whole days."""
    start = shifted(now, unit, -count)
    return Span(start if unit in ("second", "minute", "hour") else day_start(start), now)


def _so_far(match: re.Match[str], reader: Reader) -> Mentions:
    start = unit_start(unit_of(match["unit"] or match["dated"]), reader.now)
    return mention(match, Span(start, reader.now), 0.85)


def _ahead(match: re.Match[str], reader: Reader) -> Mentions:
    moment = shifted(reader.now, unit_of(match["unit"]), count_of(match["count"]))
    return mention(match, _near(moment, unit_of(match["unit"])), 0.7)


_UNIT_CUES = " ".join(UNITS)
_LONG_UNIT = r"(?:days?|nights?|weeks?|months?|quarters?|years?|decades?)\b"
_NOT_OF = r"(?!\s+of\b|['’]s?\s+worth)"
RULES: tuple[Rule, ...] = (
    rule(
        "today yesterday tomorrow",
        r"\b(?:(?:the\s+)?day\s+before\s+yesterday|(?:the\s+)?day\s+after\s+tomorrow|today"
        r"|yesterday|tomorrow)\b",
        _day,
    ),
    rule(
        "morning afternoon evening night tonight",
        r"\b(?:(?:(?P<last>last)|this(?:\s+(?:very|past))?)\s+(?P<part>morning|afternoon|evening"
        r"|night)|tonight)\b",
        _part_of_today,
    ),
    rule(
        "earlier",
        r"\bearlier\s+(?:on\s+)?(?:(?:this|in\s+the|in|that)\s+)?"
        r"(?P<unit>today|day|morning|afternoon|evening|week|month|year)\b",
        _earlier,
    ),
    rule(
        "ago back prior",
        r"\b(?:(?P<about>more\s+than|over|at\s+least|less\s+than|under|within|about|around|roughly"
        r"|approximately|some|nearly|almost|exactly|just|maybe|perhaps|like)\s+)?"
        rf"(?P<count>half\s+an?|{COUNT})\s+(?P<unit>{UNIT})(?P<half>\s+and\s+a\s+half)?\s+"
        r"(?:ago|back|prior|before\s+(?:now|today))\b",
        _ago,
    ),
    rule(
        "ago back",
        rf"\b(?P<count>{COUNT})\s*(?:-|to|or)\s*(?P<other>{COUNT})\s+(?P<unit>{UNIT})\s+"
        r"(?:ago|back)\b",
        _between_ago,
    ),
    rule(
        _UNIT_CUES,
        r"\b(?:the\s+)?(?P<which>last|this|previous|next|current|coming|upcoming|following)\s+"
        rf"(?:calendar\s+|whole\s+)?(?P<unit>(?:week|fortnight|month|quarter|year|decade)\b){_NOT_OF}"
        rf"(?P<before_last>\s+{BEFORE_LAST})?",
        _which,
    ),
    rule(
        "before",
        rf"\b(?:the\s+)?(?P<unit>week|month|quarter|year|night|day)\s+{BEFORE_LAST}",
        _before_last,
    ),
    rule(
        "before after prior",
        r"\bthe\s+(?P<unit>day|night|week|month|year)\s+(?P<side>before|prior|after)\b"
        r"(?=\s*(?:[?.!,;]|\Z))",
        _before,
    ),
    rule(
        "previous",
        r"\b(?:the\s+)?(?P<side>previous)\s+(?P<unit>day)\b",
        _before,
    ),
    rule(
        _UNIT_CUES,
        r"\b(?:the|this|these|our|my|in|over|during|for|within)?\s*"
        rf"\b(?:last|past|previous|preceding|recent)\s+(?P<count>{COUNT})\s+(?P<unit>{UNIT})"
        rf"(?!\s+ago){_NOT_OF}",
        _trailing,
    ),
    rule(
        _UNIT_CUES,
        r"\b(?:(?:over|within|throughout|across)\s+(?:the|this|our)\s+(?:last|past|previous"
        r"|preceding)|(?:in|for|during|from|of)\s+the\s+(?:last|past)|(?:the|this|in)\s+past"
        r"|this\s+(?:last|previous|preceding)|past)\s+"
        rf"(?P<unit>(?:hour|minute|day|week|fortnight|month|quarter|year|decade)\b){_NOT_OF}",
        _trailing_one,
    ),
    rule(
        "far date",
        r"\b(?:so\s+far\s+(?:in\s+)?this\s+(?P<unit>day|week|month|quarter|year)"
        r"|(?P<dated>week|month|quarter|year)[\s-]+to[\s-]+date)\b",
        _so_far,
    ),
    rule(
        "from",
        rf"\b(?P<count>{COUNT})\s+(?P<unit>{_LONG_UNIT})\s+from\s+(?:now|today)\b",
        _ahead,
    ),
)
