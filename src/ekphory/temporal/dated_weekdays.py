"""A weekday beside a date: "Wednesday, May 1", "May 1 (a Friday)". It says the date once more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ekphory.temporal.almanac import DAY, length
from ekphory.temporal.mention import Mention, Reader
from ekphory.temporal.vocabulary import WEEKDAY

_WEEKDAY = re.compile(rf"(?:[a-z]+\s+){{0,3}}{WEEKDAY}\Z", re.I)
_THEN_DATE = re.compile(r"\s*,?\s*(?:(?:on\s+)?the\s+)?\Z", re.I)
_THEN_WEEKDAY = re.compile(r"\s*,?\s*\(?\s*(?:(?:which\s+)?(?:is|was)\s+)?(?:an?\s+)?\Z", re.I)


def without_named_weekdays(mentions: Sequence[Mention], reader: Reader) -> list[Mention]:
    """Join each date with the weekday beside it, and keep the date's time."""
    done: list[Mention] = []
    for mention in mentions:
        joined = _joined(done[-1], mention, reader) if done else None
        if joined is None:
            done.append(mention)
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
