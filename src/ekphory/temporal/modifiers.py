"""Words around a time that narrow, move or open it: "early May", "the week after", "since"."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from ekphory.temporal.almanac import (
    DAY,
    EARLIEST,
    LATEST,
    Span,
    day_span,
    day_start,
    length,
    moved,
    shifted,
    unit_span,
    unit_start,
)
from ekphory.temporal.clock import clocked
from ekphory.temporal.mention import Mention, Reader
from ekphory.temporal.reference import NO_SUCH_SESSION, Sessions
from ekphory.temporal.relative import part_of_day
from ekphory.temporal.vocabulary import (
    COUNT,
    ORDINAL,
    SIDE,
    UNIT,
    WEEKDAY_NAME,
    count_of,
    ordinal_of,
    step_of,
    unit_of,
    weekday_number,
)
from ekphory.temporal.weekdays import latest_weekday

_PART = re.compile(
    r"\b(?:(?:the\s+)?(?P<part>early|mid|late|beginning|start|end|middle)(?:\s+part)?(?:\s+(?:of|in))?"
    r"|the\s+(?P<half>first|second|last|latter)\s+half\s+of)(?:\s+|-)(?:the\s+)?(?:month\s+of\s+)?\Z",
    re.I,
)
_NUMBERED_PART = re.compile(
    rf"\b(?:the\s+)?(?P<ordinal>{ORDINAL}|last)\s+(?P<name>day|week|weekend|{WEEKDAY_NAME})\s+"
    r"(?:of|in)\s+(?:the\s+)?\Z",
    re.I,
)
_WHOLE = re.compile(
    r"\b(?:the\s+)?(?P<name>week|weekend|month|year|day|morning|afternoon|evening|night)\s+"
    r"(?:of|containing)\s+(?:the\s+)?\Z",
    re.I,
)
_DISTANCE = re.compile(
    rf"\b(?:(?:on\s+)?(?:the\s+)?(?P<weekday>{WEEKDAY_NAME})"
    rf"|the\s+(?P<the>day|night|week|weekend|month|year)|(?P<count>{COUNT})\s+(?P<unit>{UNIT}))\s+"
    rf"(?P<side>{SIDE})\s+(?:the\s+)?\Z",
    re.I,
)
_AROUND = re.compile(r"\b(?:around|circa|near|close\s+to|sometime\s+in)\s+(?:the\s+)?\Z", re.I)
_DIRECTION = re.compile(
    r"\b(?P<side>ever\s+since|since|starting(?:\s+(?:from|in|on|with))?|after|before|prior\s+to|"
    r"up\s+until|up\s+to|until|till|earlier\s+than|later\s+than|no\s+later\s+than)\s+"
    r"(?:the\s+|our\s+|on\s+|in\s+)*\Z",
    re.I,
)
_ONWARDS = re.compile(
    r"\s*,?\s*(?:onwards?|and\s+(?:after|later)|or\s+later|on(?=\s*(?:[?.!,;]|\Z)))\b", re.I
)
_PART_OF_DAY = re.compile(
    r"\s*,?\s*(?:in\s+the\s+|at\s+)?(?P<part>morning|afternoon|evening|night)\b", re.I
)


def narrowed(found: Mention, reader: Reader) -> Mention:
    """Apply the words around that say which part of it, or how far from it."""
    if found.span is None:
        return found
    found = clocked(_part_of_day(found, reader), reader)
    for change in (_part, _numbered_part, _whole, _distance, _around):
        found = change(found, reader)
    return found


def directed(found: Mention, reader: Reader) -> Mention:
    """Open it to one side where "since", "before" and the like say so."""
    onwards = _ONWARDS.match(reader.after(found.end))
    if onwards is not None:
        return _opened(replace(found, end=found.end + onwards.end()), "since")
    match = _DIRECTION.search(reader.before(found.start))
    if match is None:
        return found
    side = " ".join(match["side"].lower().split())
    return _opened(replace(found, start=found.start - len(match[0])), side)


def _opened(found: Mention, side: str) -> Mention:
    is_start = side in ("since", "ever since") or side.startswith("starting")
    is_after = side in ("after", "later than")
    if found.span is not None:
        start, end = found.span.start, found.span.end
        span = Span(start, None) if is_start else Span(end, None) if is_after else Span(None, start)
        return replace(found, span=span, wider=None, repeats=None)
    if found.sessions is not None:
        first, last = found.sessions.first, found.sessions.last
        if is_start:
            return replace(found, sessions=replace(found.sessions, last=-1))
        if is_after:
            return replace(found, sessions=Sessions(last + 1 or NO_SUCH_SESSION, -1))
        only_none = first == 1
        before = Sessions(NO_SUCH_SESSION, NO_SUCH_SESSION) if only_none else Sessions(1, first - 1)
        return replace(found, sessions=before)
    return found


def _grown(found: Mention, match: re.Match[str], span: Span | None) -> Mention:
    return replace(found, start=found.start - len(match[0]), span=span, wider=None, repeats=None)


def _part_of_day(found: Mention, reader: Reader) -> Mention:
    match, span = _PART_OF_DAY.match(reader.after(found.end)), found.span
    if match is None or span is None or length(span) != DAY or span.start is None:
        return found
    inner = part_of_day(span.start, match["part"].lower())
    return replace(found, end=found.end + match.end(), span=inner, wider=span)


def _part(found: Mention, reader: Reader) -> Mention:
    match, span = _PART.search(reader.before(found.start)), found.span
    if match is None or span is None or span.start is None or span.end is None:
        return found
    whole = span.end - span.start
    if whole <= DAY:
        return found
    name = (match["part"] or match["half"]).lower()
    first, last = {
        "first": (0, 6),
        "second": (6, 12),
        "last": (6, 12),
        "latter": (6, 12),
        "mid": (4, 8),
        "middle": (4, 8),
        "late": (8, 12),
        "end": (8, 12),
    }.get(name, (0, 4))
    part = Span(
        day_start(span.start + whole * first / 12), day_start(span.start + whole * last / 12)
    )
    if last == 12:
        part = Span(part.start, span.end)
    repeats = found.repeats
    return replace(_grown(found, match, part), wider=span, repeats=repeats)


def _numbered_part(found: Mention, reader: Reader) -> Mention:
    match, span = _NUMBERED_PART.search(reader.before(found.start)), found.span
    if match is None or span is None or span.start is None or span.end is None:
        return found
    parts = _parts_of(span.start, span.end, match["name"].lower())
    number = len(parts) if match["ordinal"].lower() == "last" else ordinal_of(match["ordinal"])
    if not 1 <= number <= len(parts):
        return found
    return replace(_grown(found, match, parts[number - 1]), repeats=found.repeats)


def _parts_of(start: datetime, end: datetime, name: str) -> list[Span]:
    """Give the days, weeks (from its first day), weekends or weekdays within at most 400 days."""
    most = min(end, moved(start, DAY * 400))
    if name == "week":
        # What is left of a month after four weeks belongs to the last.
        count = max((most - start) // (7 * DAY), 1)
        starts = [start + 7 * DAY * number for number in range(count)]
        return [Span(a, b) for a, b in zip(starts, [*starts[1:], most], strict=True)]
    days = [start + DAY * number for number in range((most - start) // DAY)]
    if name == "day":
        return [day_span(day) for day in days]
    if name == "weekend":
        return [day_span(day, days=2) for day in days if day.weekday() == 5]
    return [day_span(day) for day in days if day.weekday() == weekday_number(name)]


def _whole(found: Mention, reader: Reader) -> Mention:
    match, span = _WHOLE.search(reader.before(found.start)), found.span
    if match is None or span is None or span.start is None:
        return found
    name = match["name"].lower()
    if name in ("morning", "afternoon", "evening", "night"):
        is_day = length(span) == DAY
        inner = part_of_day(span.start, name) if is_day else span
        return replace(_grown(found, match, inner), wider=span)
    if name == "weekend":
        saturday = moved(unit_start("week", span.start), 5 * DAY)
        return _grown(found, match, day_span(saturday, days=2))
    whole = length(span)
    if name == "day" or (whole is not None and whole > 7 * DAY):
        return _grown(found, match, span)
    return _grown(found, match, unit_span(unit_of(name), span.start))


def _distance(found: Mention, reader: Reader) -> Mention:
    match, span = _DISTANCE.search(reader.before(found.start)), found.span
    if match is None or span is None or span.start is None or span.end is None:
        return found
    step = step_of(match["side"])
    if match["weekday"] is not None:
        return _grown(found, match, _nearest(span, weekday_number(match["weekday"]), step))
    if match["the"] is not None:
        return _grown(found, match, unit_beside(span.start, span.end, match["the"].lower(), step))
    unit = unit_of(match["unit"])
    moment = shifted(span.start, unit, step * count_of(match["count"]))
    margin = DAY * {"week": 3, "month": 10, "year": 60}.get(unit, 0)
    near = Span(moved(day_start(moment), -margin), moved(day_start(moment), margin + DAY))
    return _grown(found, match, near)


def _nearest(span: Span, weekday: int, step: int) -> Span:
    """Give the last such weekday before (-1) or the first one after (1) a time."""
    if step < 0:
        return day_span(latest_weekday(span.start or LATEST, weekday))
    end = span.end or EARLIEST
    return day_span(moved(day_start(end), DAY * ((weekday - end.weekday()) % 7)))


def unit_beside(start: datetime, end: datetime, name: str, step: int) -> Span:
    """Give the unit right before (-1) or right after (1) a time."""
    if name != "weekend":
        unit = unit_of(name)
        return (
            Span(shifted(start, unit, -1), start) if step < 0 else Span(end, shifted(end, unit, 1))
        )
    saturday = moved(unit_start("week", start), 5 * DAY)
    overlaps = saturday < end and start < moved(saturday, 2 * DAY)
    is_there = not overlaps and (saturday < start) == (step < 0)
    return day_span(saturday if is_there else moved(saturday, 7 * DAY * step), days=2)


def _around(found: Mention, reader: Reader) -> Mention:
    match, span = _AROUND.search(reader.before(found.start)), found.span
    if match is None or span is None or span.start is None or span.end is None:
        return found
    margin = 3 * DAY if span.end - span.start <= DAY else (span.end - span.start) / 3
    wide = Span(moved(span.start, -margin), moved(span.end, margin))
    return replace(_grown(found, match, wide), confidence=found.confidence * 0.9)
