"""The time of the clock beside a day: "yesterday at 3pm", "between 2 and 4pm on Monday"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ekphory.temporal.almanac import DAY, Span, day_start, length, moved
from ekphory.temporal.mention import Mention, Reader

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
    """Give that time within a day or a part of it; a night goes on after midnight."""
    if within.start is None or within.end is None:
        return
    midnight = day_start(within.start)
    # The midnight that ends a day is the one after it.
    for hour in (24,) if is_end and time.is_midnight else _hours(time):
        moment = moved(midnight, timedelta(hours=hour, minutes=time.minute or 0))
        if within.start <= moment < within.end or (is_end and moment == within.end):
            yield moment


def _hours(time: _Time) -> tuple[int, ...]:
    """Give the hours after midnight that it can mean, the likeliest first."""
    if time.half is not None:
        hour = time.hour % 12 + (12 if time.half == "p" else 0)
        return hour, hour + 24
    # A bare 3 or 3:00 is rather in the afternoon; 03:00 is as on a clock of 24 hours.
    if not time.of_24 and time.hour < 7:
        return time.hour + 12, time.hour, time.hour + 24
    return time.hour, time.hour + 12, time.hour + 24
