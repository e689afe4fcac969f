"""The time of the clock beside a day: "yesterday at 3pm", "between 2 and 4pm on Monday"."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recollect.temporal.almanac import DAY, Span, day_start, length, moved
from recollect.temporal.mention import Mention, Reader

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
    rf"|(?:at\s+)?(?:(?P<side>{_SIDES})\s+)?(?P<one>{_TIME})|at\s+(?P<bare>{_NUMBER}))"
    r"\s*,?\s+(?:on\s+)?\Z",
    re.I,
)


@dataclass(frozen=True, slots=True)
class _Time:
    """What is written: an hour, perhaps with a minute, perhaps with "a" or "p" for its half."""

    hour: int
    minute: int | None
    half: str | None


def clocked(found: Mention, reader: Reader) -> Mention:
    """Narrow a day, or a part of one, to the time of the clock that stands beside it."""
    whole = None if found.span is None else length(found.span)
    if found.span is None or whole is None or whole > DAY:
        return found
    before = _BEFORE.search(reader.before(found.start))
    match = before or _AFTER.match(reader.after(found.end))
    if match is None:
        return found
    span = _one(match, found.span) if match["first"] is None else _range(match, found.span)
    if span is None:
        return found
    start = found.start - len(match[0]) if before else found.start
    end = found.end if before else found.end + len(match[0])
    return replace(found, start=start, end=end, span=span, wider=found.span)


def _one(match: re.Match[str], within: Span) -> Span | None:
    time, side = _time(match["one"] or match["bare"]), (match["side"] or "").lower()
    moment = _moment(time, within)
    if moment is None:
        return None
    if side in ("before", "until", "till", "by"):
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
    # "Between 2 and 4pm" begins at 2pm, "between 11 and 1pm" at 11am.
    for half in (first.half or last.half, first.half):
        start, end = _moment(replace(first, half=half), within), _moment(last, within)
        if start is not None and end is not None and start < end:
            return Span(start, end)
    return None


def _time(text: str) -> _Time:
    lower = text.lower()
    if lower in ("noon", "midnight"):
        return _Time(12, None, "p" if lower == "noon" else "a")
    numbers = [int(number) for number in re.findall(r"\d+", lower)]
    half = re.search(r"([ap])\.?m", lower)
    minute = numbers[1] if len(numbers) > 1 else None
    return _Time(numbers[0], minute, None if half is None else half[1])


def _moment(time: _Time, within: Span) -> datetime | None:
    """Give that time within a day or a part of it; a night goes on after midnight."""
    if within.start is None or within.end is None:
        return None
    midnight = day_start(within.start)
    for hour in _hours(time):
        moment = moved(midnight, timedelta(hours=hour, minutes=time.minute or 0))
        if within.start <= moment < within.end:
            return moment
    return None


def _hours(time: _Time) -> tuple[int, ...]:
    """Give the hours after midnight that it can mean, the likeliest first."""
    if time.half is not None:
        hour = time.hour % 12 + (12 if time.half == "p" else 0)
        return hour, hour + 24
    # A bare 3 is rather in the afternoon; 3:00 is as on a clock of 24 hours.
    if time.minute is None and time.hour < 7:
        return time.hour + 12, time.hour, time.hour + 24
    return time.hour, time.hour + 12, time.hour + 24
