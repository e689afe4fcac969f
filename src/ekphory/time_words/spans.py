"""Words that narrow, move or open a time, times of the clock, and times that two make."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ekphory.time_words.reference import (
    DAY,
    NO_SUCH_SESSION,
    WEEK,
    Sessions,
    Span,
    Unit,
    find_day_start,
    find_unit_start,
    move,
    shift,
    span_days,
    span_unit,
)
from ekphory.time_words.rules import (
    DATA,
    UNITS,
    WEEKDAYS,
    Mention,
    Query,
    compile_pattern,
    fold,
    read_number,
    span_part_of_day,
)

# A weekday beside a date: "Wednesday, May 1", "May 1 (a Friday)". It says the date once more.


def join_named_weekdays(mentions: Sequence[Mention], query: Query) -> list[Mention]:
    """Join each date with the weekday beside it, and keep the date's time."""
    done: list[Mention] = []
    for each in mentions:
        joined = _join_weekday(done[-1], each, query) if done else None
        done = [*done[:-1], joined] if joined else [*done, each]
    return done


def _join_weekday(first: Mention, second: Mention, query: Query) -> Mention | None:
    between = query.text[first.end : second.start][:40]
    if _is_weekday(first, query) and _is_date(second, query):
        is_joined = compile_pattern("weekday_then_date").match(between)
        return replace(second, start=first.start) if is_joined else None
    if _is_date(first, query) and _is_weekday(second, query):
        is_closed = "(" in between and query.text.startswith(")", second.end)
        is_joined = compile_pattern("date_then_weekday").match(between)
        return replace(first, end=second.end + is_closed) if is_joined else None
    return None


def _is_weekday(mention: Mention, query: Query) -> bool:
    return compile_pattern("weekday").match(query.text[mention.start : mention.end]) is not None


def _is_date(mention: Mention, query: Query) -> bool:
    if mention.span is None or mention.span.length != DAY or _is_weekday(mention, query):
        return False
    has_digit = any(letter.isdecimal() for letter in query.text[mention.start : mention.end])
    return has_digit or mention.repeats in ("month", "year")


# The time of the clock beside a day: "yesterday at 3pm", "between 2 and 4pm on Monday".

_HALF_HOUR = timedelta(minutes=30)
_UP_TO = ("before", "until", "till", "by")


@dataclass(frozen=True, slots=True)
class _ClockTime:
    """What is written: an hour, perhaps with a minute, perhaps with "a" or "p" for its half."""

    hour: int
    minute: int = 0
    half: str = ""
    of_24: bool = False

    @property
    def is_midnight(self) -> bool:
        return (self.hour, self.minute, self.half) == (12, 0, "a")

    def list_hours(self) -> tuple[int, ...]:
        """Return the hours after midnight that it can mean, the likeliest first."""
        if self.half:
            hour = self.hour % 12 + (12 if self.half == "p" else 0)
            return hour, hour + 24
        # A bare 3 or 3:00 is rather in the afternoon; 03:00 is as on a clock of 24 hours.
        if not self.of_24 and self.hour < 7:
            return self.hour + 12, self.hour, self.hour + 24
        return self.hour, self.hour + 12, self.hour + 24

    def list_moments(self, within: Span, *, is_end: bool = False) -> Iterator[datetime]:
        """Return that time within a day or a part of it; a night goes on after midnight."""
        # The midnight that ends a day is the one after it.
        for hour in (24,) if is_end and self.is_midnight else self.list_hours():
            moment = move(find_day_start(within.start), timedelta(hours=hour, minutes=self.minute))
            if within.start <= moment < within.end or (is_end and moment == within.end):
                yield moment


def _read_clock(text: str) -> _ClockTime:
    lower = text.lower()
    if lower in ("noon", "midnight"):
        return _ClockTime(12, half="p" if lower == "noon" else "a")
    hour, *minutes = (int(number) for number in re.findall(r"\d+", lower))
    half = re.search(r"([ap])\.?m", lower)
    of_24 = lower.startswith("0") or hour > 12
    return _ClockTime(hour, minutes[0] if minutes else 0, half[1] if half else "", of_24)


def _narrow_to_clock(found: Mention, query: Query) -> Mention:
    """Narrow a day, or a part of one, to the time of the clock that stands beside it."""
    if found.span is None or found.span.length > DAY:
        return found
    start, end, is_limit = found.start, found.end, False
    if match := query.before("clock_before", start):
        start -= len(match[0])
        is_score = compile_pattern("clock_or_score").fullmatch(match[0])
        if is_score and not query.before("clock_led", start):
            return found
        is_limit = query.before("clock_limit", start) is not None
    elif match := query.after("clock_after", end):
        end += len(match[0])
    else:
        return found
    is_range, within = bool(match["first"]), found.span
    span = _read_hours(match, within) if is_range else _read_hour(match, within, is_limit=is_limit)
    if span is None or span.start >= span.end:
        return found
    return replace(found, start=start, end=end, span=span, wider=within)


def _read_hour(match: re.Match[str], within: Span, *, is_limit: bool) -> Span | None:
    clock, side = _read_clock(match["one"] or match["bare"]), fold(match["side"])
    # "Until midnight yesterday" goes on to the end of yesterday.
    is_end = side in _UP_TO or (is_limit and clock.is_midnight)
    if (moment := next(clock.list_moments(within, is_end=is_end), None)) is None:
        return None
    if side in _UP_TO:
        return Span(within.start, moment)
    if side in ("after", "since", "from"):
        return Span(moment, within.end)
    # The hour that is named, or the one around a minute.
    start = move(moment, -_HALF_HOUR) if clock.minute else moment
    margin = _HALF_HOUR if side else timedelta(0)
    return Span(move(start, -margin), move(start, 2 * _HALF_HOUR + margin))


def _read_hours(match: re.Match[str], within: Span) -> Span | None:
    if match["opening"] is None and match["last"].isdecimal():
        # "3-2" can be a result.
        return None
    first, last = _read_clock(match["first"]), _read_clock(match["last"])
    of_24 = first.of_24 or last.of_24
    is_told = of_24 or first.half or last.half
    # "From 6 to 11" can be of a morning or of an evening, where the day has both.
    if not is_told and first.hour < 7 <= last.hour and len(list(first.list_moments(within))) > 1:
        return None
    # "Between 2 and 4pm" begins at 2pm, "between 11 and 1pm" at 11am.
    last_half = "p" if last.is_midnight else last.half
    starts = [
        start
        for half in (first.half or last_half, first.half)
        for start in replace(first, half=half, of_24=of_24).list_moments(within)
    ]
    ends = list(replace(last, of_24=of_24).list_moments(within, is_end=True))
    return next((Span(start, end) for start in starts for end in ends if start < end), None)


# Words around a time that narrow, move or open it: "early May", "the week after", "since".


def narrow(found: Mention, query: Query) -> Mention:
    """Apply the words around that say which part of it, or how far from it."""
    if found.span is None:
        return found
    found = _narrow_to_clock(_narrow_to_part_of_day(found, query), query)
    for name, change in _CHANGES.items():
        match = query.before(name, found.start)
        if match is not None and found.span is not None and not found.span.is_open:
            changed = change(match, found, found.span)
            if changed is not None:
                found = replace(changed, start=found.start - len(match[0]))
    return found


def _narrow_to_part_of_day(found: Mention, query: Query) -> Mention:
    match, span = query.after("part_of_day", found.end), found.span
    if match is None or span is None or span.length != DAY:
        return found
    inner = span_part_of_day(span.start, fold(match["part"]))
    return replace(found, end=found.end + match.end(), span=inner, wider=span)


def _take_part(match: re.Match[str], found: Mention, span: Span) -> Mention | None:
    """Read "early May" and "the first half of May"."""
    if span.length <= DAY:
        return None
    first, last = DATA["words"]["twelfths"][fold(match["part"] or match["half"])]
    start = find_day_start(span.start + span.length * first / 12)
    end = span.end if last == 12 else find_day_start(span.start + span.length * last / 12)
    return replace(found, span=Span(start, end), wider=span)


def _take_numbered_part(match: re.Match[str], found: Mention, span: Span) -> Mention | None:
    """Read "the second week of May" and "the last Friday of May"."""
    parts = _list_parts(span, fold(match["name"]))
    number = len(parts) if fold(match["nth"]) == "last" else read_number(match["nth"])
    if not 1 <= number <= len(parts):
        return None
    return replace(found, span=parts[number - 1], wider=None)


def _list_parts(span: Span, name: str) -> list[Span]:
    """Return the days, weeks (from its first day), weekends or weekdays within at most 400 days."""
    most = min(span.end, move(span.start, DAY * 400))
    if name == "week":
        # What is left of a month after four weeks belongs to the last.
        count = max((most - span.start) // WEEK, 1)
        starts = [span.start + WEEK * number for number in range(count)]
        return [Span(a, b) for a, b in zip(starts, [*starts[1:], most], strict=True)]
    days = [span.start + DAY * number for number in range((most - span.start) // DAY)]
    if name == "day":
        return [span_days(day) for day in days]
    if name == "weekend":
        return [span_days(day, 0, 2) for day in days if day.weekday() == WEEKDAYS["saturday"]]
    return [span_days(day) for day in days if day.weekday() == WEEKDAYS[name]]


def _take_whole(match: re.Match[str], found: Mention, span: Span) -> Mention:
    """Read "the week of May 8th" and "the evening of May 8th"."""
    name, wider = fold(match["name"]), None
    if name in DATA["words"]["parts_of_day"]:
        whole, wider = span_part_of_day(span.start, name) if span.length == DAY else span, span
    elif name == "weekend":
        whole = _find_weekend(span.start)
    elif name == "day" or span.length > WEEK:
        whole = span
    else:
        whole = span_unit(UNITS[name], span.start)
    return replace(found, span=whole, wider=wider, repeats=None)


def _find_weekend(moment: datetime) -> Span:
    return span_days(find_unit_start("week", moment), 5, 7)


def _go_from(match: re.Match[str], found: Mention, span: Span) -> Mention:
    """Read "two days before May 8", "the week after it", "the Friday before it"."""
    step = _read_side(match)
    if match["weekday"]:
        near = _find_weekday(span, WEEKDAYS[fold(match["weekday"])], step)
    elif match["beside"]:
        near = _find_beside(span, fold(match["beside"]), step)
    else:
        unit = UNITS[fold(match["unit"])]
        moment = shift(span.start, unit, step * read_number(match["count"]))
        margin = {"week": 3, "month": 10, "year": 60}.get(unit, 0)
        near = span_days(moment, -margin, margin + 1)
    return replace(found, span=near, wider=None, repeats=None)


def _read_side(match: re.Match[str]) -> int:
    """Return 1 for words that say "after", -1 for those that say "before"."""
    return 1 if fold(match["side"]) in ("after", "following") else -1


def _find_weekday(span: Span, weekday: int, step: int) -> Span:
    """Return the last such weekday before (-1) or the first one after (1) a time."""
    if step < 0:
        days = -((span.start.weekday() - weekday) % 7 or 7)
        return span_days(span.start, days, days + 1)
    days = (weekday - span.end.weekday()) % 7
    return span_days(span.end, days, days + 1)


def _find_beside(span: Span, name: str, step: int) -> Span:
    """Return the unit right before (-1) or right after (1) a time."""
    if name != "weekend":
        unit = UNITS[name]
        if step < 0:
            return Span(shift(span.start, unit, -1), span.start)
        return Span(span.end, shift(span.end, unit, 1))
    weekend = _find_weekend(span.start)
    is_apart = weekend.start >= span.end or span.start >= weekend.end
    if is_apart and (weekend.start < span.start) == (step < 0):
        return weekend
    return span_days(weekend.start, 7 * step, 7 * step + 2)


def _surround(match: re.Match[str], found: Mention, span: Span) -> Mention:
    """Read "around May 8"."""
    del match
    margin = 3 * DAY if span.length <= DAY else span.length / 3
    wide = Span(move(span.start, -margin), move(span.end, margin))
    return replace(found, span=wide, wider=None, repeats=None, confidence=found.confidence * 0.9)


_CHANGES = {
    "part": _take_part,
    "numbered_part": _take_numbered_part,
    "whole": _take_whole,
    "distance": _go_from,
    "around": _surround,
}


def open_side(found: Mention, query: Query) -> Mention:
    """Open it to one side where "since", "before" and the like say so."""
    if match := query.after("onwards", found.end):
        return _open(replace(found, end=found.end + match.end()), "since")
    if (match := query.before("direction", found.start)) is None:
        return found
    side = "since" if match["start"] else "after" if match["after"] else "before"
    return _open(replace(found, start=found.start - len(match[0])), side)


def _open(found: Mention, side: str) -> Mention:
    if found.span is not None:
        start, end = found.span.start, found.span.end
        sides = {"since": Span(start=start), "after": Span(start=end), "before": Span(end=start)}
        return replace(found, span=sides[side], wider=None, repeats=None)
    if found.sessions is None:
        return found
    first, last = found.sessions.first, found.sessions.last
    before = (1, first - 1) if first != 1 else (NO_SUCH_SESSION, NO_SUCH_SESSION)
    numbers = {"since": (first, -1), "after": (last + 1 or NO_SUCH_SESSION, -1), "before": before}
    return replace(found, sessions=Sessions(*numbers[side]))


# Two times that make one: "between May 8th and June 9th", "last year in May".


def combine(mentions: Sequence[Mention], query: Query) -> list[Mention]:
    """Join neighbours that belong together, from left to right."""
    done: list[Mention] = []
    for mention in mentions:
        following = _step_to_session(_correct(mention, mentions, query), query)
        joined = _join(done[-1], following, query) if done else None
        if joined is None:
            done.append(following)
        elif joined.sessions is not None and following.start < done[-1].end:
            # "In May, sessions 1 and 2": the time is already joined with the first of them.
            done.append(joined)
        else:
            done = [*_apply_to_list(done, joined), joined]
    return done


def _apply_to_list(done: Sequence[Mention], joined: Mention) -> list[Mention]:
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


def _correct(mention: Mention, mentions: Sequence[Mention], query: Query) -> Mention:
    """Follow "not the last one, but the one before that", and "the last one and the one before"."""
    if (match := query.after("corrected", mention.end)) is None:
        return mention
    end = mention.end + match.end()
    # "the day before" can be the beginning of "the day before yesterday".
    if any(each.start < end < each.end for each in mentions):
        return mention
    denied = query.before("not", mention.start)
    start = mention.start - (len(denied[0]) if denied else 0)
    grown = replace(mention, start=start, end=end)
    other = _step(grown, _read_side(match), fold(match["unit"]))
    return _cover(grown, other) if match["both"] and denied is None else other


def _step_to_session(mention: Mention, query: Query) -> Mention:
    """Follow "the session before our third session"."""
    match = query.before("session_beside", mention.start)
    if match is None or mention.sessions is None:
        return mention
    grown = replace(mention, start=mention.start - len(match[0]))
    return _step(grown, _read_side(match), "")


def _cover(mention: Mention, other: Mention) -> Mention:
    """Cover a time and the one right before or after it."""
    mine, theirs = mention.sessions, other.sessions
    if mine is not None and theirs is not None:
        if theirs.first == NO_SUCH_SESSION:
            return mention
        first, last = min(mine.first, theirs.first), max(mine.last, theirs.last)
        return replace(mention, sessions=Sessions(first, last))
    span, beside = mention.span, other.span
    if span is None or beside is None or span.is_open or beside.is_open:
        return mention
    return replace(other, span=Span(min(span.start, beside.start), max(span.end, beside.end)))


def _step(mention: Mention, step: int, unit: str) -> Mention:
    """Return the session, the unit or the time as long right before (-1) or after (1)."""
    if mention.sessions is not None:
        edge = mention.sessions.first if step < 0 else mention.sessions.last
        number = edge + step or NO_SUCH_SESSION
        return replace(mention, sessions=Sessions(number, number))
    span = mention.span
    if span is None or span.is_open:
        return mention
    by = step * span.length
    as_long = Span(move(span.start, by), move(span.end, by))
    beside = _find_beside(span, unit, step) if unit else as_long
    return replace(mention, span=beside, wider=None)


def _join(first: Mention, second: Mention, query: Query) -> Mention | None:
    between = query.text[first.end : second.start]
    if len(between) > 40:
        return None
    if counted := _count_within(first, second, query):
        return counted
    to = compile_pattern("to").match(between)
    if to is not None and _is_range(first, to["word"].lower(), query):
        return _reach(first, second)
    if compile_pattern("within").match(between):
        return _put_within(first, second) or _put_within(second, first)
    return None


def _count_within(first: Mention, second: Mention, query: Query) -> Mention | None:
    """Read "the last session" and "before Christmas" as one: the last of those before it."""
    if first.sessions is None or first.span is not None:
        return None
    opened = open_side(second, query)
    is_next = not query.text[first.end : opened.start].strip()
    if opened.span is None or not opened.span.is_open or not is_next:
        return None
    return _put_within(first, opened)


def _is_range(first: Mention, word: str, query: Query) -> bool:
    opening = query.before("between", first.start)
    return word != "and" or (opening is not None and opening["word"].lower() == "between")


def _reach(first: Mention, second: Mention) -> Mention | None:
    """Return the time from one to the other, both included."""
    confidence = min(first.confidence, second.confidence)
    if first.sessions is not None and second.sessions is not None:
        sessions = Sessions(first.sessions.first, second.sessions.last)
        return Mention(start=first.start, end=second.end, confidence=confidence, sessions=sessions)
    if first.span is None or second.span is None:
        return None
    start, end = _align(first.span, first.repeats, second.span, second.repeats)
    span = Span(start.start, end.end)
    if span.is_open or span.start >= span.end:
        return None
    repeats = first.repeats if first.repeats == second.repeats else None
    return Mention(
        start=first.start, end=second.end, confidence=confidence, span=span, repeats=repeats
    )


def _align(
    start: Span, start_repeats: Unit | None, end: Span, end_repeats: Unit | None
) -> tuple[Span, Span]:
    """Move what has no year (week, month) of its own so that the second follows the first."""
    if datetime.min in (start.start, end.start):
        return start, end
    is_late = start.start > end.start
    if start_repeats and (is_late or (start_repeats == "year" and end_repeats is None)):
        return _repeat_within(start, start_repeats, Span(end=end.end)) or start, end
    if start_repeats is None and end_repeats is not None:
        return start, _repeat_within(end, end_repeats, Span(start=start.start)) or end
    return start, end


def _put_within(inner: Mention, outer: Mention) -> Mention | None:
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
    if inner.span is None or inner.repeats is None or inner.span.is_open or outer.span.is_open:
        return None
    if inner.span.length >= outer.span.length:
        return None
    span = _repeat_within(inner.span, inner.repeats, outer.span)
    return replace(both, span=span, wider=None, repeats=outer.repeats) if span else None


def _repeat_within(span: Span, every: Unit, outer: Span) -> Span | None:
    """Return the first repetition that begins at `outer.start`, or the last one before its end."""
    if span.is_open:
        return None
    days = {"week": 7, "month": 30.4, "year": 365.25}[every]
    if outer.start != datetime.min:
        rough = int((outer.start - span.start).days / days)
        steps = range(rough - 1, rough + 3)
    elif outer.end != datetime.max:
        rough = int((outer.end - span.end).days / days)
        steps = range(rough + 1, rough - 3, -1)
    else:
        return span
    for step in steps:
        start = shift(span.start, every, step)
        end = move(start, span.length)
        if every == "year" and span.start.day == 1 and span.end.day == 1:
            end = shift(span.end, every, step)
        if outer.start <= start < outer.end:
            return Span(start, end)
    return None
