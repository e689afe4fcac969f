"""Times that nobody counts: "recently", "the other day", "a while ago", "just now"."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

from ekphory.temporal.almanac import DAY, Span, day_start, moved
from ekphory.temporal.mention import Mention, Reader, Rule, mention, rule

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


RULES: tuple[Rule, ...] = (
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
