"""Times counted from now, seasons and holidays, and times that nobody counts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from ekphory.time_words.dates import YEAR_TAIL, year_of
from ekphory.time_words.reference import (
    BEFORE_LAST,
    COUNT,
    DAY,
    UNIT,
    UNITS,
    Mention,
    Reader,
    Rule,
    Span,
    Unit,
    count_of,
    dated,
    day_span,
    day_start,
    is_exact,
    mention,
    month_start,
    moved,
    rule,
    shifted,
    step_of,
    unit_of,
    unit_span,
    unit_start,
)

# Times counted from now: "yesterday", "3 days ago", "last month", "over the last week".

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
    """Return the morning, afternoon, evening or night of a day."""
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
    """Return the time up to now that began so many units ago; longer than hours, whole days."""
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
RELATIVE_RULES: tuple[Rule, ...] = (
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


# Seasons and holidays: "in spring", "last summer", "winter 2022", "at Christmas".

_FIRST_MONTH = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_IN = re.compile(
    r"\b(?:in|during|since|until|till|over|throughout|early|mid|late|all)[\s-]+(?:the\s+)?\Z", re.I
)


_AT = re.compile(
    r"\b(?:at|on|over|around|during|since|before|after|until|till|for|from|by)\s+(?:the\s+)?\Z",
    re.I,
)


def _season_of(name: str, year: int) -> Span:
    """Meteorological seasons of the northern half; winter is named by the year it begins in."""
    start = month_start(year * 12 + _FIRST_MONTH[name] - 1)
    return Span(start, shifted(start, "month", 3))


def _season(match: re.Match[str], reader: Reader) -> tuple[Mention, ...]:
    name, which, now = match["season"].lower(), (match["which"] or "").lower(), reader.now
    year = year_of(match, reader)
    if year is not None:
        return mention(match, _season_of(name, year), 0.85)
    if match["before_last"] or which in ("last", "past", "previous"):
        return mention(match, _ended(name, now, 2 if match["before_last"] else 1), 0.85)
    if not which and not _IN.search(reader.before(match.start())):
        return ()
    seasons = [_season_of(name, year) for year in range(now.year + 1, now.year - 3, -1)]
    if which in ("next", "coming"):
        ahead = [each for each in seasons if each.start is not None and each.start > now]
        return mention(match, ahead[-1] if ahead else None, 0.75)
    begun = [each for each in seasons if each.start is not None and each.start <= now]
    return mention(match, begun[0] if begun else None, 0.85, repeats="year")


def _seasons_ago(match: re.Match[str], reader: Reader) -> tuple[Mention, ...]:
    count = count_of(match["count"])
    span = _ended(match["season"].lower(), reader.now, count) if count else None
    return mention(match, span, 0.8)


def _ended(name: str, now: datetime, count: int) -> Span | None:
    """Return the newest such season that is over, for 1, or one before it."""
    for year in range(now.year, now.year - 3, -1):
        end = _season_of(name, year).end
        if end is not None and end <= now:
            return _season_of(name, year - count + 1)
    return None


def easter(year: int) -> datetime:
    """Return Easter Sunday of the Gregorian calendar.

    Source: the anonymous algorithm in Meeus, Astronomical Algorithms (1991), chapter 8.
    """
    golden, century, rest = year % 19, year // 100, year % 100
    leap, shift = divmod(century, 4)
    moon = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - leap - moon + 15) % 30
    weekday = (32 + 2 * shift + 2 * (rest // 4) - epact - rest % 4) % 7
    correction = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * correction + 114, 31)
    return datetime(year, month, day + 1)


def _fixed(month: int, day: int, *, days: int = 1) -> Callable[[int], Span | None]:
    def of(year: int) -> Span | None:
        first = dated(year, month, day)
        return None if first is None or first.start is None else day_span(first.start, days=days)

    return of


def _thanksgiving(year: int) -> Span:
    first = datetime(year, 11, 1)
    return day_span(moved(first, DAY * ((3 - first.weekday()) % 7 + 21)))


_HOLIDAYS: dict[str, Callable[[int], Span | None]] = {
    "christmas eve": _fixed(12, 24),
    "christmas day": _fixed(12, 25),
    "christmas": _fixed(12, 24, days=3),
    "xmas": _fixed(12, 24, days=3),
    "boxing day": _fixed(12, 26),
    "new year's eve": _fixed(12, 31),
    "new year's day": _fixed(1, 1),
    "new year's": _fixed(1, 1),
    "new year": _fixed(1, 1),
    "valentine's day": _fixed(2, 14),
    "halloween": _fixed(10, 31),
    "independence day": _fixed(7, 4),
    "thanksgiving": _thanksgiving,
    "easter": lambda year: day_span(moved(easter(year), -2 * DAY), days=4),
}


_HOLIDAY_NAMES = "|".join(name.replace(" ", r"\s+") for name in _HOLIDAYS)


def _holiday(match: re.Match[str], reader: Reader) -> tuple[Mention, ...]:
    of, now = _HOLIDAYS[" ".join(match["holiday"].lower().split())], reader.now
    which = (match["which"] or "").lower()
    year = year_of(match, reader)
    if year is not None:
        return mention(match, of(year), 0.6)
    if not which and not _AT.search(reader.before(match.start())):
        return ()
    years = [year for year in range(now.year + 1, now.year - 2, -1) if 2 <= year < 9998]
    spans = [span for year in years if (span := of(year)) is not None and span.start is not None]
    if which == "next":
        ahead = [span for span in spans if span.start is not None and span.start > now]
        return mention(match, ahead[-1] if ahead else None, 0.5)
    begun = [span for span in spans if span.start is not None and span.start <= now]
    return mention(match, begun[0] if begun else None, 0.5, repeats=None if which else "year")


SEASON_RULES: tuple[Rule, ...] = (
    rule(
        " ".join(f"{season} {season}time" for season in _FIRST_MONTH),
        r"\b(?:(?P<which>last|this|past|previous|next|coming)\s+)?"
        rf"(?P<season>{'|'.join(_FIRST_MONTH)})(?:time)?\b(?!\s+break)"
        rf"(?:\s+(?P<before_last>{BEFORE_LAST})|{YEAR_TAIL})",
        _season,
    ),
    rule(
        " ".join(f"{season} {season}s" for season in _FIRST_MONTH),
        rf"\b(?P<count>{COUNT})\s+(?P<season>{'|'.join(_FIRST_MONTH)})s?\s+ago\b",
        _seasons_ago,
    ),
    rule(
        "christmas xmas boxing year's year valentine's halloween independence thanksgiving easter",
        r"\b(?:(?P<which>last|this|past|previous|next)\s+)?"
        rf"(?P<holiday>{_HOLIDAY_NAMES})\b{YEAR_TAIL}",
        _holiday,
    ),
)


# Times that nobody counts: "recently", "the other day", "a while ago", "just now".

_RECENT = 14
"""Days that "recently" reaches back; what lies before is found by the wider time."""


def _recently(match: re.Match[str], reader: Reader) -> tuple[Mention, ...]:
    now = reader.now
    span = Span(day_start(moved(now, -DAY * _RECENT)), now)
    found = mention(match, span, 0.25, wider=Span(moved(span.start or now, -DAY * 60), now))
    return tuple(replace(each, newest_first=True) for each in found)


def _just_now(match: re.Match[str], reader: Reader) -> tuple[Mention, ...]:
    now = reader.now
    wider = Span(moved(now, -DAY), now)
    return mention(match, Span(moved(now, -timedelta(hours=1)), now), 0.6, wider=wider)


def _other(match: re.Match[str], reader: Reader) -> tuple[Mention, ...]:
    farthest, nearest = {"day": (10, 2), "night": (10, 2), "week": (28, 7), "month": (92, 28)}[
        match["unit"].lower()
    ]
    midnight = day_start(reader.now)
    span = Span(moved(midnight, -DAY * farthest), moved(midnight, -DAY * (nearest - 1)))
    return mention(match, span, 0.5)


def _while_ago(match: re.Match[str], reader: Reader) -> tuple[Mention, ...]:
    is_long = match["long"] is not None
    end = moved(day_start(reader.now), -DAY * (180 if is_long else 14))
    return mention(match, Span(None, end), 0.3)


VAGUE_RULES: tuple[Rule, ...] = (
    rule(
        "recently lately",
        r"\b(?<!how )(?:most\s+|very\s+|quite\s+|just\s+)?(?:recently|lately)\b",
        _recently,
    ),
    rule("days", r"\b(?:these|the\s+last\s+few)\s+days\b", _recently),
    rule(
        "now moment minute",
        r"\b(?:just\s+now|a\s+(?:moment|minute|second)\s+ago)\b",
        _just_now,
    ),
    rule("other", r"\bthe\s+other\s+(?P<unit>day|night|week|month)\b", _other),
    rule(
        "while time",
        r"\b(?:a\s+)?(?:(?P<long>long)\s+)?(?:quite\s+)?(?:a\s+)?(?:while|(?:some\s+|long\s+)time)"
        r"\s+(?:ago|back)\b",
        _while_ago,
    ),
)


# Events that stand for a time: "before we moved". Only the memories can say when that was.

CONFIDENCE = 0.1
"""Low: without the memories an event is not a time, and its words are left to look for."""


def _event(match: re.Match[str], reader: Reader) -> tuple[Mention, ...]:
    del reader
    return (Mention(start=match.start(), end=match.end(), confidence=CONFIDENCE),)


EVENT_RULES: tuple[Rule, ...] = (
    rule(
        "before after since until till while when",
        r"\b(?:before|after|since|until|till|while|(?<=\w )when)\s+"
        r"(?:(?:I|we|you|he|she|they|it)\s+[^\W\d_]+|(?:the|our|my|your|his|her|their)\s+"
        r"[^\W\d_]+)(?:\s+[^\W\d_]+){0,4}",
        _event,
    ),
)
