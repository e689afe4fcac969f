"""`read_time`: the one entry, from a query to what it says about time."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from functools import cache
from importlib.util import find_spec
from itertools import chain

from ekphory.time_words.reference import (
    ReferenceKind,
    TimeReading,
    TimeReference,
    Unit,
    clamp,
    span_unit,
)
from ekphory.time_words.rules import (
    DATA,
    ELSEWHERE_RULES,
    EVENT_RULES,
    RULES,
    Mention,
    Query,
    TimeRule,
)
from ekphory.time_words.spans import combine, join_named_weekdays, narrow, open_side
from ekphory.types import find_zone

LONGEST_QUERY = 2000
"""Characters of a query that are read; what follows says nothing about time."""
MOST = 20
"""Expressions of time that are read, the first ones."""

_QUERY_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d\w*")
_QUOTED = re.compile(r'"[^"]{1,200}"')
_PLAIN = str.maketrans(
    {"’": "'", "‘": "'", "–": "-", "—": "-", "‐": "-", "‑": "-", "−": "-", "“": '"', "”": '"'}
)


def read_time(query: str, *, now: datetime, timezone: str | tzinfo = "UTC") -> TimeReading:
    """Read what a query says about time.

    Rules for English come first; they read the first 2,000 characters. Weeks begin on Monday,
    a partial date is the newest that has begun, and sessions count by time, from the newest
    backwards or from the oldest forwards; docs/decisions/0013 has all conventions. Where no rule
    for English finds anything, rules for other languages read years and seasons of a year, and
    what else they say about time is read by dateparser, if it is installed.

    Args:
        query: Any text.
        now: The moment it was asked; without a timezone it is in UTC.
        timezone: Where days begin and end, as a name of the IANA database or a `tzinfo`.

    Returns:
        The references, and what else the query says. No text raises an error.

    Raises:
        InvalidInput: There is no such timezone.
    """
    zone = find_zone(timezone)
    text = query[:LONGEST_QUERY].translate(_PLAIN)
    words = _list_words(text)
    if not words:
        return TimeReading((), "")
    read = Query(_QUOTED.sub(_mask, text), _to_local(now, zone))
    mentions = _find_mentions(words, read)
    language = None
    if not mentions:
        mentions, language = _find_elsewhere(text, words, read)
    references = tuple(_refer(query, mention, zone) for mention in mentions)
    dated = [each for each in references if each.kind != "event"]
    if language in _UNSPACED:
        # Where no space ends a time, the words after it are not part of it.
        text = _blank_out(text, dated)
    remaining = _strip_filler(text, dated)
    if language is None:
        return TimeReading(references, remaining)
    missing = None if has_dateparser() or mentions else MISSING
    return TimeReading(references, _strip_foreign_filler(remaining, language), missing)


def _mask(match: re.Match[str]) -> str:
    """Hide a title or quotation within the text; all of it in quotes is not a quotation."""
    is_all = not match.string[: match.start()].strip() and not match.string[match.end() :].strip()
    return match[0] if is_all else "#" * len(match[0])


def _list_words(text: str) -> set[str]:
    """Return the words that cues are compared with, also in the singular, and "0" for a digit."""
    found = _QUERY_WORD.findall(text.lower())
    endings = ("", "s", "'s")
    words = {word.removesuffix(ending) for word in found for ending in endings}
    return words | {"0"} if any(word[0].isdecimal() for word in found) else words


def _to_local(now: datetime, zone: tzinfo) -> datetime:
    local = now if now.tzinfo is not None else now.replace(tzinfo=UTC)
    # Within a day of the calendar's ends there is nothing to count from.
    with suppress(OverflowError):
        local = local.astimezone(zone)
    return clamp(local.replace(tzinfo=None))


def _find_mentions(words: set[str], query: Query) -> list[Mention]:
    found = list(_find_all(RULES, words, query))
    happenings = _find_all(EVENT_RULES, words, query)
    if not found:
        return _drop_overlaps(happenings)[:MOST]
    dated = join_named_weekdays(_drop_overlaps(found)[:MOST], query)
    narrowed = _drop_overlaps(narrow(each, query) for each in dated)
    read = _drop_overlaps(open_side(each, query) for each in combine(narrowed, query))
    taken = [(each.start, each.end) for each in read]
    apart = (each for each in happenings if all(each.end <= a or b <= each.start for a, b in taken))
    return sorted([*read, *_drop_overlaps(apart)], key=lambda each: each.start)[:MOST]


def _find_all(rules: Iterable[TimeRule], words: set[str], query: Query) -> Iterator[Mention]:
    cued = (rule for rule in rules if not rule.cues.isdisjoint(words))
    return chain.from_iterable(rule.find(query) for rule in cued)


def _drop_overlaps(mentions: Iterable[Mention]) -> list[Mention]:
    """Of mentions that overlap keep the longest, of equally long ones the first rule's.

    Several mentions of one and the same place belong together ("sessions 2 and 4").
    """
    chosen: list[Mention] = []
    for each in sorted(mentions, key=lambda each: each.start - each.end):
        rivals = (other for other in chosen if each.start < other.end and other.start < each.end)
        if all(_is_of_one_list(each, other) for other in rivals):
            chosen.append(each)
    return sorted(chosen, key=lambda each: (each.start, each.end))


def _is_of_one_list(each: Mention, other: Mention) -> bool:
    is_same_place = (other.start, other.end) == (each.start, each.end)
    return is_same_place and each.sessions is not None and other.sessions != each.sessions


def _refer(query: str, mention: Mention, zone: tzinfo) -> TimeReference:
    interval = mention.span.to_utc(zone) if mention.span else None
    wider = mention.wider.to_utc(zone) if mention.wider else None
    # An hour that the clocks skipped has no moment; the day around it has.
    if wider and interval and interval.start and interval.end and interval.start >= interval.end:
        interval, wider = wider, None
    kind: ReferenceKind = "event" if mention.span is None else "interval"
    return TimeReference(
        kind=kind if mention.sessions is None else "sessions",
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


# What is left of a query when time and the words of any question are taken away.

_FILLER_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_FILLER = frozenset(word for words in DATA["filler"].values() for word in words.split())
_CONTENT = re.compile(rf"\b(?:{'|'.join(DATA['content']['phrases'])})\b", re.IGNORECASE)


def _blank_out(text: str, taken: Sequence[TimeReference]) -> str:
    for each in taken:
        text = text[: each.start] + " " * (each.end - each.start) + text[each.end :]
    return text


def _strip_filler(text: str, taken: Sequence[TimeReference]) -> str:
    """Return the words of a text outside of these that say what is looked for."""
    kept = [match.span() for match in _CONTENT.finditer(text)]
    return " ".join(
        match[0]
        for match in _FILLER_WORD.finditer(text)
        if (
            match[0].lower().removesuffix("'s") not in _FILLER
            or any(start <= match.start() < end for start, end in kept)
        )
        and not any(each.start <= match.start() < each.end for each in taken)
    )


# Times in other languages than English: years by rules, others by dateparser if it is installed.

LONGEST = 300
"""Characters that are read: dateparser's time grows with the text."""
MISSING = "times in other languages need pip install 'ekphory[languages]'"
_CONFIDENCE = 0.7
_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = frozenset(DATA["words"]["english"].split())
_CUES = {code: frozenset(language["cues"].split()) for code, language in DATA["languages"].items()}
_FOREIGN_FILLER = {
    code: frozenset(language.get("filler", "").split())
    for code, language in DATA["languages"].items()
}
_UNSPACED = ("ja", "zh")


def detect_language(text: str) -> str | None:
    """Return the language most of whose words of time stand in a text; None for English or none."""
    words = set(_WORD.findall(text.lower()))
    if words & _ENGLISH:
        return None
    counts = {
        code: sum(cue in text for cue in cues) if code in _UNSPACED else len(cues & words)
        for code, cues in _CUES.items()
    }
    best = max(counts, key=lambda code: counts[code])
    return best if counts[best] else None


@cache
def has_dateparser() -> bool:
    """Whether dateparser is there; looked up once."""
    return find_spec("dateparser") is not None


def _find_elsewhere(text: str, words: set[str], query: Query) -> tuple[list[Mention], str | None]:
    """Read a text that is not in English; say also which language it is in, if that is known."""
    if words & _ENGLISH:
        return [], None
    rules = [rule for rule in ELSEWHERE_RULES if not rule.cues.isdisjoint(words)]
    named = [(each, rule.language) for rule in rules for each in rule.find(query)]
    years = _drop_overlaps(each for each, _ in named)
    language = detect_language(text)
    dated = _find_foreign_mentions(query, language) if language and has_dateparser() else []
    apart = (
        each for each in dated if all(each.end <= a.start or a.end <= each.start for a in years)
    )
    # "En 2024" is French and Spanish: the words of its questions tell which.
    codes = sorted({code for _, code in named if code})
    known = language or max(
        codes, key=lambda code: len(words & _FOREIGN_FILLER[code]), default=None
    )
    return sorted([*years, *apart], key=lambda each: each.start)[:MOST], known


def _find_foreign_mentions(query: Query, language: str) -> list[Mention]:
    """Read a text in one language; needs dateparser."""
    text = query.text[:LONGEST]
    found: list[Mention] = []
    place = 0
    for words, moment, unit in _find_dates(text, language, query.now):
        start = text.find(words, place)
        if start < 0:
            continue
        place = start + len(words)
        span = span_unit(unit, clamp(moment))
        found.append(Mention(start=start, end=place, span=span, confidence=_CONFIDENCE))
    return found


def _find_dates(text: str, language: str, now: datetime) -> list[tuple[str, datetime, Unit]]:
    # Slow to load, and needed for few queries.
    from dateparser.date import DateDataParser
    from dateparser.search import search_dates

    settings = {"RELATIVE_BASE": now, "PREFER_DATES_FROM": "past"}
    units: dict[str | None, Unit] = {"week": "week", "month": "month", "year": "year"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parser = DateDataParser(languages=[language], settings=settings)
            read = search_dates(text, languages=[language], settings=settings) or []
            periods = [parser.get_date_data(words).period for words, _ in read]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # It fails on some texts that are no dates; then they say nothing about time.
        return []
    return [
        (words.strip(" ?!.,"), moment.replace(tzinfo=None), units.get(period, "day"))
        for (words, moment), period in zip(read, periods, strict=True)
        if any(letter.isalnum() for letter in words)
    ]


def _strip_foreign_filler(remaining: str, language: str) -> str:
    """Leave out of what remains the language's words of time and of any question."""
    filler = _CUES[language] | _FOREIGN_FILLER[language]
    words = remaining.split()
    return " ".join(each for each in words if not filler.issuperset(each.lower().split("'")))
