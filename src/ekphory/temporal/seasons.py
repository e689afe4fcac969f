"""Seasons and holidays: "in spring", "last summer", "winter 2022", "at Christmas"."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from ekphory.temporal.almanac import DAY, Span, dated, day_span, month_start, moved, shifted
from ekphory.temporal.dates import YEAR_TAIL, year_of
from ekphory.temporal.mention import Mention, Reader, Rule, mention, rule
from ekphory.temporal.vocabulary import BEFORE_LAST, COUNT, count_of

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
    """Give the newest such season that is over, for 1, or one before it."""
    for year in range(now.year, now.year - 3, -1):
        end = _season_of(name, year).end
        if end is not None and end <= now:
            return _season_of(name, year - count + 1)
    return None


def easter(year: int) -> datetime:
    """Give Easter Sunday of the Gregorian calendar.

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


RULES: tuple[Rule, ...] = (
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
