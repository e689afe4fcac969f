"""Words that narrow, move or open a time, times of the clock, and spans of two times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ekphory.time_words.dates import latest_weekday
from ekphory.time_words.reference import (
    COUNT,
    DAY,
    EARLIEST,
    LATEST,
    NO_SUCH_SESSION,
    ORDINAL,
    SIDE,
    UNIT,
    WEEKDAY_NAME,
    Mention,
    Reader,
    Sessions,
    Span,
    Unit,
    count_of,
    day_span,
    day_start,
    length,
    moved,
    ordinal_of,
    shifted,
    step_of,
    unit_of,
    unit_span,
    unit_start,
    weekday_number,
)
from ekphory.time_words.relative import part_of_day

# The time of the clock beside a day: "yesterday at 3pm", "between 2 and 4pm on Monday".

_HOUR = timedelta(hours=1)
_NUMBER = r"(?:1[0-2]|[1-9])\b"
_TIME = (
    r"(?:(?:1[0-2]|0?[1-9])(?:[:.][0-5]\d)?\s*[ap]\.?m\b\.?|(?:[01]?\d|2[0-3]):[0-5]\d\b"
    rf"|{_NUMBER}\s+o'clock\b|(?:noon|midnight)\b)"
)
_SIDES = "around|about|before|after|by"
_FIRST = (
    rf"(?P<opening>(?:between|from)\s+)?(?P<first>{_TIME}|{_NUMBER})\s*(?:and|to|until|till|-)\s*"
)
_ENDS = r"(?=\s*(?:[?.!,;]|\Z))"
_AFTER = re.compile(
    rf"\s*,?\s*(?:{_FIRST}(?P<last>{_TIME}|{_NUMBER}{_ENDS})"
    rf"|(?:at\s+)?(?:(?P<side>{_SIDES}|until|till|since|from)\s+)?(?P<one>{_TIME})"
    rf"|at\s+(?P<bare>{_NUMBER}){_ENDS})",
    re.I,
)
_BEFORE = re.compile(
    rf"(?<![\w:.])(?:{_FIRST}(?P<last>{_TIME}|{_NUMBER})"
    rf"|(?:at\s+)?(?:(?P<side>{_SIDES}|from)\s+)?(?P<one>{_TIME})|at\s+(?P<bare>{_NUMBER}))"
    r"\s*,?\s+(?:on\s+)?\Z",
    re.I,
)

_UP_TO = ("before", "until", "till", "by")
_LIMIT = re.compile(r"\b(?:until|till|up\s+to|prior\s+to|(?:earlier|later)\s+than)\s+\Z", re.I)
# "3:10 yesterday" can be a result, "at 3:10 yesterday" cannot.
_SCORE = re.compile(r"\d+:\d\d(?:\s*(?:and|to|until|till|-)\s*\d+:\d\d)?\s*,?\s+(?:on\s+)?", re.I)
_LED = re.compile(
    r"\b(?:at|since|starting|until|till|up\s+to|prior\s+to|than|between"
    r"|(?:from|between)\b[^?!]*(?:\b(?:to|and|through)|-))\s+\Z",
    re.I,
)


@dataclass(frozen=True, slots=True)
class _Time:
    """What is written: an hour, perhaps with a minute, perhaps with "a" or "p" for its half."""

    hour: int
    minute: int | None
    half: str | None
    of_24: bool = False

    @property
    def is_midnight(self) -> bool:
        return (self.hour, self.minute or 0, self.half) == (12, 0, "a")


def clocked(found: Mention, reader: Reader) -> Mention:
    """Narrow a day, or a part of one, to the time of the clock that stands beside it."""
    whole = None if found.span is None else length(found.span)
    if found.span is None or whole is None or whole > DAY:
        return found
    before = _BEFORE.search(reader.before(found.start))
    match = before or _AFTER.match(reader.after(found.end))
    if match is None:
        return found
    start = found.start - len(match[0]) if before else found.start
    end = found.end if before else found.end + len(match[0])
    words_before = reader.before(start) if before else ""
    if before and _SCORE.fullmatch(match[0]) and not _LED.search(words_before):
        return found
    is_limit = _LIMIT.search(words_before) is not None
    span = _read(match, found.span, is_limit=is_limit)
    if span is None or span.start is None or span.end is None or span.start >= span.end:
        return found
    return replace(found, start=start, end=end, span=span, wider=found.span)


def _read(match: re.Match[str], within: Span, *, is_limit: bool) -> Span | None:
    if match["first"] is not None:
        return _range(match, within)
    return _one(match, within, is_limit=is_limit)


def _one(match: re.Match[str], within: Span, *, is_limit: bool) -> Span | None:
    time, side = _time(match["one"] or match["bare"]), (match["side"] or "").lower()
    # "Until midnight yesterday" goes on to the end of yesterday.
    is_end = side in _UP_TO or (is_limit and time.is_midnight)
    moment = next(_moments(time, within, is_end=is_end), None)
    if moment is None:
        return None
    if side in _UP_TO:
        return Span(within.start, moment)
    if side in ("after", "since", "from"):
        return Span(moment, within.end)
    # The hour that is named, or the one around a minute.
    early = _HOUR / 2 if time.minute else timedelta(0)
    margin = _HOUR / 2 if side else timedelta(0)
    return Span(moved(moment, -early - margin), moved(moment, _HOUR - early + margin))


def _range(match: re.Match[str], within: Span) -> Span | None:
    if match["opening"] is None and match["last"].isdecimal():
        # "3-2" can be a result.
        return None
    first, last = _time(match["first"]), _time(match["last"])
    of_24 = first.of_24 or last.of_24
    last_half = "p" if last.is_midnight else last.half
    if _is_of_either_half(first, last, within):
        return None
    # "Between 2 and 4pm" begins at 2pm, "between 11 and 1pm" at 11am.
    starts = [
        start
        for half in (first.half or last_half, first.half)
        for start in _moments(replace(first, half=half, of_24=of_24), within)
    ]
    ends = list(_moments(replace(last, of_24=of_24), within, is_end=True))
    spans = (Span(start, end) for start in starts for end in ends if start < end)
    return next(spans, None)


def _is_of_either_half(first: _Time, last: _Time, within: Span) -> bool:
    """Whether it is "from 6 to 11", of a morning or of an evening, and the day has both."""
    is_told = first.of_24 or last.of_24 or (first.half or last.half) is not None
    if is_told or not first.hour < 7 <= last.hour:
        return False
    return len(list(_moments(first, within))) > 1


def _time(text: str) -> _Time:
    lower = text.lower()
    if lower in ("noon", "midnight"):
        return _Time(12, None, "p" if lower == "noon" else "a")
    numbers = [int(number) for number in re.findall(r"\d+", lower)]
    half = re.search(r"([ap])\.?m", lower)
    minute = numbers[1] if len(numbers) > 1 else None
    of_24 = lower.startswith("0") or numbers[0] > 12
    return _Time(numbers[0], minute, None if half is None else half[1], of_24)


def _moments(time: _Time, within: Span, *, is_end: bool = False) -> Iterator[datetime]:
    """Return that time within a day or a part of it; a night goes on after midnight."""
    if within.start is None or within.end is None:
        return
    midnight = day_start(within.start)
    # The midnight that ends a day is the one after it.
    for hour in (24,) if is_end and time.is_midnight else _hours(time):
        moment = moved(midnight, timedelta(hours=hour, minutes=time.minute or 0))
        if within.start <= moment < within.end or (is_end and moment == within.end):
            yield moment


def _hours(time: _Time) -> tuple[int, ...]:
    """Return the hours after midnight that it can mean, the likeliest first."""
    if time.half is not None:
        hour = time.hour % 12 + (12 if time.half == "p" else 0)
        return hour, hour + 24
    # A bare 3 or 3:00 is rather in the afternoon; 03:00 is as on a clock of 24 hours.
    if not time.of_24 and time.hour < 7:
        return time.hour + 12, time.hour, time.hour + 24
    return time.hour, time.hour + 12, time.hour + 24


# Words around a time that narrow, move or open it: "early May", "the week after", "since".

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


def narrow(found: Mention, reader: Reader) -> Mention:
    """Apply the words around that say which part of it, or how far from it."""
    if found.span is None:
        return found
    found = clocked(_part_of_day(found, reader), reader)
    for change in (_part, _numbered_part, _whole, _distance, _around):
        found = change(found, reader)
    return found


def direct(found: Mention, reader: Reader) -> Mention:
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
    """Return the days, weeks (from its first day), weekends or weekdays within at most 400 days."""
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
    """Return the last such weekday before (-1) or the first one after (1) a time."""
    if step < 0:
        return day_span(latest_weekday(span.start or LATEST, weekday))
    end = span.end or EARLIEST
    return day_span(moved(day_start(end), DAY * ((weekday - end.weekday()) % 7)))


def unit_beside(start: datetime, end: datetime, name: str, step: int) -> Span:
    """Return the unit right before (-1) or right after (1) a time."""
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


# Two times that make one: "between May 8th and June 9th", "last year in May".

_BETWEEN = re.compile(
    r"\b(?P<word>between|from|starting(?:\s+(?:from|in|on))?)\s+(?:[\w']+\s+){0,2}\Z", re.I
)
_TO = re.compile(
    r"\s*,?\s*(?P<word>to|until|till|through|thru|up\s+(?:to|until|till)|and|-)\s*"
    r"(?:(?:including|the|on|in|our)\s+)*\Z",
    re.I,
)
_WITHIN = re.compile(r"\s*,?\s*(?:(?:of|in|on|from|during|that|the|this)\s+)*\Z", re.I)
_CORRECTED = re.compile(
    r"\s*,?\s*(?P<both>(?:and|or)\s+(?:also\s+)?(?!but\b|rather\b))?(?:(?:but|and|rather)\s+)*"
    r"(?:(?:in|on|during|from|about)\s+)?(?:rather\s+)?(?:the\s+)?"
    r"(?:one|session|time|conversation|discussion|chat|meeting|(?P<unit>day|week|month|year))\s+"
    r"(?:right\s+|just\s+|directly\s+|immediately\s+)?(?P<side>before|prior|preceding|after)"
    r"(?:\s+to)?(?:\s+(?:that|it|this|the\s+last))?\b(?:\s+one\b)?",
    re.I,
)
_NOT = re.compile(r"\bnot\s+(?:(?:in|during|at|from|the|our)\s+)*\Z", re.I)
_BESIDE = re.compile(
    r"\b(?:the\s+)?(?:one|session|conversation|discussion|chat|meeting)\s+(?:right\s+|just\s+)?"
    rf"(?P<side>{SIDE})\s+(?:the\s+|our\s+)*\Z",
    re.I,
)


def combine(mentions: Sequence[Mention], reader: Reader) -> list[Mention]:
    """Join neighbours that belong together, from left to right."""
    done: list[Mention] = []
    for mention in mentions:
        following = _session_beside(_corrected(mention, mentions, reader), reader)
        joined = _joined(done[-1], following, reader) if done else None
        if joined is None:
            done.append(following)
        elif joined.sessions is not None and following.start < done[-1].end:
            # "In May, sessions 1 and 2": the time is already joined with the first of them.
            done.append(joined)
        else:
            done = [*_all_within(done, joined), joined]
    return done


def _all_within(done: Sequence[Mention], joined: Mention) -> list[Mention]:
    """Apply to "sessions 1 and 2", two mentions of one place, the time that the last one got."""
    *others, last = done
    if joined.sessions is None or joined.sessions != last.sessions:
        return others
    place = (last.start, last.end)
    return [
        replace(each, start=joined.start, end=joined.end, span=joined.span)
        if (each.start, each.end) == place
        else each
        for each in others
    ]


def _corrected(mention: Mention, mentions: Sequence[Mention], reader: Reader) -> Mention:
    """Follow "not the last one, but the one before that", and "the last one and the one before"."""
    match = _CORRECTED.match(reader.after(mention.end))
    if match is None:
        return mention
    end = mention.end + match.end()
    # "the day before" can be the beginning of "the day before yesterday".
    if any(each.start < end < each.end for each in mentions):
        return mention
    denied = _NOT.search(reader.before(mention.start))
    start = mention.start - (0 if denied is None else len(denied[0]))
    grown = replace(mention, start=start, end=end)
    other = _stepped(grown, step_of(match["side"]), match["unit"])
    return _both(grown, other) if match["both"] and denied is None else other


def _session_beside(mention: Mention, reader: Reader) -> Mention:
    """Follow "the session before our third session"."""
    match = _BESIDE.search(reader.before(mention.start))
    if match is None or mention.sessions is None:
        return mention
    grown = replace(mention, start=mention.start - len(match[0]))
    return _stepped(grown, step_of(match["side"]))


def _both(mention: Mention, other: Mention) -> Mention:
    """Cover a time and the one right before or after it."""
    mine, theirs = mention.sessions, other.sessions
    if mine is not None and theirs is not None:
        if theirs.first == NO_SUCH_SESSION:
            return mention
        first, last = min(mine.first, theirs.first), max(mine.last, theirs.last)
        return replace(mention, sessions=Sessions(first, last))
    span, beside = mention.span or Span(None, None), other.span or Span(None, None)
    if span.start is None or span.end is None or beside.start is None or beside.end is None:
        return mention
    return replace(other, span=Span(min(span.start, beside.start), max(span.end, beside.end)))


def _stepped(mention: Mention, step: int, unit: str | None = None) -> Mention:
    if mention.sessions is not None:
        edge = mention.sessions.first if step < 0 else mention.sessions.last
        number = edge + step or NO_SUCH_SESSION
        return replace(mention, sessions=Sessions(number, number))
    span = mention.span
    if span is None or span.start is None or span.end is None:
        return mention
    if unit is not None:
        beside = unit_beside(span.start, span.end, unit.lower(), step)
        return replace(mention, span=beside, wider=None)
    whole = span.end - span.start
    return replace(
        mention,
        span=Span(moved(span.start, step * whole), moved(span.end, step * whole)),
        wider=None,
    )


def _joined(first: Mention, second: Mention, reader: Reader) -> Mention | None:
    between = reader.text[first.end : second.start]
    if len(between) > 40:
        return None
    counted = _counted_within(first, second, reader)
    if counted is not None:
        return counted
    to = _TO.match(between)
    if to is not None and _is_range(first, to["word"].lower(), reader):
        return _span(first, second)
    if _WITHIN.match(between):
        return _within(first, second) or _within(second, first)
    return None


def _counted_within(first: Mention, second: Mention, reader: Reader) -> Mention | None:
    """Read "the last session" and "before Christmas" as one: the last of those before it."""
    if first.sessions is None or first.span is not None:
        return None
    opened = direct(second, reader)
    is_open = opened.span is not None and None in (opened.span.start, opened.span.end)
    is_next = not reader.text[first.end : opened.start].strip()
    return _within(first, opened) if is_open and is_next else None


def _is_range(first: Mention, word: str, reader: Reader) -> bool:
    opening = _BETWEEN.search(reader.before(first.start))
    if word != "and":
        return True
    return opening is not None and opening["word"].lower() == "between"


def _span(first: Mention, second: Mention) -> Mention | None:
    confidence = min(first.confidence, second.confidence)
    if first.sessions is not None and second.sessions is not None:
        sessions = Sessions(first.sessions.first, second.sessions.last)
        return Mention(start=first.start, end=second.end, confidence=confidence, sessions=sessions)
    if first.span is None or second.span is None:
        return None
    start, end = _aligned(first, second)
    if start.start is None or end.end is None or start.start >= end.end:
        return None
    repeats = first.repeats if first.repeats == second.repeats else None
    return Mention(
        start=first.start,
        end=second.end,
        confidence=confidence,
        span=Span(start.start, end.end),
        repeats=repeats,
    )


def _aligned(first: Mention, second: Mention) -> tuple[Span, Span]:
    """Move what has no year (week, month) of its own so that the second follows the first."""
    start, end = first.span or Span(None, None), second.span or Span(None, None)
    if start.start is None or end.start is None:
        return start, end
    if start.start > end.start and first.repeats is not None:
        return _moved_into(start, first.repeats, Span(None, end.end)) or start, end
    if first.repeats is None and second.repeats is not None:
        return start, _moved_into(end, second.repeats, Span(start.start, None)) or end
    if first.repeats == "year" and second.repeats is None:
        return _moved_into(start, "year", Span(None, end.end)) or start, end
    return start, end


def _within(inner: Mention, outer: Mention) -> Mention | None:
    """Read "May" and "last year" as one, and "the second session" and "in May"."""
    if outer.span is None:
        return None
    both = replace(
        inner,
        start=min(inner.start, outer.start),
        end=max(inner.end, outer.end),
        confidence=min(inner.confidence, outer.confidence),
    )
    if inner.sessions is not None and inner.span is None:
        return replace(both, span=outer.span)
    if inner.span is None or inner.repeats is None:
        return None
    mine, whole = length(inner.span), length(outer.span)
    if mine is None or whole is None or mine >= whole:
        return None
    span = _moved_into(inner.span, inner.repeats, outer.span)
    if span is None:
        return None
    return replace(both, span=span, wider=None, repeats=outer.repeats)


def _moved_into(span: Span, every: Unit, outer: Span) -> Span | None:
    """Return the first repetition that begins at `outer.start`, or the last one before its end."""
    if span.start is None or span.end is None:
        return None
    per = {"week": 7, "month": 30.4, "year": 365.25}.get(every, 365.25)
    if outer.start is not None:
        rough = int((outer.start - span.start).days / per)
        steps = range(rough - 1, rough + 3)
    elif outer.end is not None:
        rough = int((outer.end - span.end).days / per)
        steps = range(rough + 1, rough - 3, -1)
    else:
        return span
    for step in steps:
        start = shifted(span.start, every, step)
        end = moved(start, span.end - span.start)
        if every == "year" and span.start.day == 1 and span.end.day == 1:
            end = shifted(span.end, every, step)
        after = outer.start is None or start >= outer.start
        before = outer.end is None or start < outer.end
        if after and before:
            return Span(start, end)
    return None
