"""`read_time`: the one entry, from a query to what it says about time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from itertools import chain

from ekphory.temporal import dates, events, relative, seasons, sessions, vague, weekdays
from ekphory.temporal.almanac import bounded
from ekphory.temporal.dated_weekdays import without_named_weekdays
from ekphory.temporal.filler import without_filler
from ekphory.temporal.languages import (
    MISSING,
    foreign_mentions,
    is_installed,
    language_of,
    without_foreign_filler,
)
from ekphory.temporal.mention import Mention, Reader, Rule
from ekphory.temporal.modifiers import directed, narrowed
from ekphory.temporal.reference import Interval, ReferenceKind, TimeReading, TimeReference
from ekphory.temporal.spans import combined
from ekphory.temporal.zones import zone_of

LONGEST = 2000
"""Characters of a query that are read; what follows says nothing about time."""
MOST = 20
"""Expressions of time that are read, the first ones."""

_RULES: tuple[Rule, ...] = (
    *dates.RULES,
    *sessions.RULES,
    *weekdays.RULES,
    *relative.RULES,
    *seasons.RULES,
    *vague.RULES,
)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d\w*")
_QUOTED = re.compile(r'"[^"]{1,200}"')
_PLAIN = str.maketrans(
    {"’": "'", "‘": "'", "–": "-", "—": "-", "‐": "-", "‑": "-", "−": "-", "“": '"', "”": '"'}
)


def read_time(query: str, *, now: datetime, timezone: str | tzinfo = "UTC") -> TimeReading:
    """Read what a query says about time.

    Rules for English come first; they read the first 2,000 characters. Weeks begin on Monday,
    a partial date is the newest that has begun, and sessions count by time, from the newest
    backwards or from the oldest forwards; docs/decisions/0013 has all conventions. Where no rule
    finds anything and the words are of another language, dateparser reads it, if it is installed.

    Args:
        query: Any text.
        now: The moment it was asked; without a timezone it is in UTC.
        timezone: Where days begin and end, as a name of the IANA database or a `tzinfo`.

    Returns:
        The references, and what else the query says. No text raises an error.

    Raises:
        InvalidInput: There is no such timezone.
    """
    zone = zone_of(timezone)
    text = query[:LONGEST].translate(_PLAIN)
    words = _words(text)
    if not words:
        return TimeReading((), "")
    reader = Reader(_QUOTED.sub(_masked, text), _local(now, zone))
    mentions = _mentions(words, reader)
    language = None if mentions else language_of(text)
    if language is not None and is_installed():
        mentions = list(foreign_mentions(reader, language))[:MOST]
    references = tuple(_reference(query, mention, zone) for mention in mentions)
    spans = ((each.start, each.end) for each in references if each.kind != "event")
    remaining = without_filler(text, spans)
    if language is None:
        return TimeReading(references, remaining)
    missing = None if is_installed() else MISSING
    return TimeReading(references, without_foreign_filler(remaining, language), missing)


def _masked(match: re.Match[str]) -> str:
    """Hide a title or quotation within the text; all of it in quotes is no quotation."""
    is_all = not match.string[: match.start()].strip() and not match.string[match.end() :].strip()
    return match[0] if is_all else "#" * len(match[0])


def _words(text: str) -> set[str]:
    found = _WORD.findall(text.lower())
    words = {*found, *(word.removesuffix("'s") for word in found)}
    return words | {"0"} if any(word[0].isdecimal() for word in words) else words


def _local(now: datetime, zone: tzinfo) -> datetime:
    aware = now if now.tzinfo is not None else now.replace(tzinfo=UTC)
    try:
        local = aware.astimezone(zone)
    except OverflowError:
        # Within a day of the calendar's ends there is nothing to count from.
        local = aware
    return bounded(local.replace(tzinfo=None))


def _mentions(words: set[str], reader: Reader) -> list[Mention]:
    found = list(_matches(_RULES, words, reader))
    if not found:
        return _apart(_matches(events.RULES, words, reader))[:MOST]
    dated = without_named_weekdays(_apart(found)[:MOST], reader)
    read = [narrowed(each, reader) for each in dated]
    read = [directed(each, reader) for each in combined(_apart(read), reader)]
    happenings = (
        each
        for each in _matches(events.RULES, words, reader)
        if all(each.end <= other.start or other.end <= each.start for other in read)
    )
    return sorted([*_apart(read), *_apart(happenings)], key=lambda each: each.start)[:MOST]


def _matches(rules: Iterable[Rule], words: set[str], reader: Reader) -> Iterable[Mention]:
    return chain.from_iterable(
        rule.read(match, reader)
        for rule in rules
        if not rule.cues.isdisjoint(words)
        for match in rule.matches(reader.text)
    )


def _apart(mentions: Iterable[Mention]) -> list[Mention]:
    """Of mentions that overlap keep the longest, of equally long ones the first rule's.

    Several mentions of one and the same place belong together ("sessions 2 and 4").
    """
    chosen: list[Mention] = []
    for each in sorted(mentions, key=lambda each: each.start - each.end):
        place = (each.start, each.end)
        rivals = (other for other in chosen if each.start < other.end and other.start < each.end)
        if all(_belongs(each, other, place) for other in rivals):
            chosen.append(each)
    return sorted(chosen, key=lambda each: (each.start, each.end))


def _belongs(each: Mention, other: Mention, place: tuple[int, int]) -> bool:
    is_same_place = (other.start, other.end) == place
    return is_same_place and each.sessions is not None and other.sessions != each.sessions


def _reference(query: str, mention: Mention, zone: tzinfo) -> TimeReference:
    interval = None if mention.span is None else mention.span.in_utc(zone)
    wider = None if mention.wider is None else mention.wider.in_utc(zone)
    # An hour that the clocks skipped has no moment; the day around it has.
    if wider is not None and _is_empty(interval):
        interval, wider = wider, None
    return TimeReference(
        kind=_kind(mention),
        text=query[mention.start : mention.end],
        start=mention.start,
        end=mention.end,
        confidence=mention.confidence,
        interval=interval,
        wider=wider,
        sessions=mention.sessions,
        before_ongoing=mention.before_ongoing,
        newest_first=mention.newest_first,
    )


def _is_empty(interval: Interval | None) -> bool:
    if interval is None or interval.start is None or interval.end is None:
        return False
    return interval.start >= interval.end


def _kind(mention: Mention) -> ReferenceKind:
    if mention.sessions is not None:
        return "sessions"
    return "event" if mention.span is None else "interval"
