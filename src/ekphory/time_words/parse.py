"""`read_time`: the one entry, from a query to what it says about time."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cache
from importlib.util import find_spec
from itertools import chain
from typing import cast

from ekphory.time_words import dates, relative, sessions
from ekphory.time_words.dates import join_named_weekdays
from ekphory.time_words.reference import (
    Interval,
    Mention,
    Reader,
    ReferenceKind,
    Rule,
    TimeReading,
    TimeReference,
    Unit,
    bounded,
    unit_span,
)
from ekphory.time_words.spans import combine, direct, narrow
from ekphory.types import find_zone

# Times in other languages than English, read by dateparser where it is installed.

LONGEST = 300
"""Characters that are read: dateparser's time grows with the text."""
MISSING = "times in other languages need pip install 'ekphory[languages]'"
_CONFIDENCE = 0.7
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Language:
    """How a language is known, and what its questions are made of.

    Attributes:
        cues: Words of time that no English text has; those of languages without spaces are
            looked for anywhere.
        filler: Words of any question, in lower case; without them none asks for a time alone.
    """

    cues: str
    filler: str = ""


LANGUAGES: Mapping[str, Language] = {
    "de": Language(
        "gestern heute vorgestern letzten letzte letztes letzter vergangenen vergangene vor januar "
        "februar märz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag "
        "samstag sonntag woche monat jahr tagen wochen monaten",
        "was worüber wovon haben hast habe hatten wir ich du uns mir dir am im in an der die das "
        "den dem es um über von wurde war gesprochen besprochen geredet gesagt erzählt unterhalten "
        "diskutiert passiert geschehen sag zeig mir bitte gemacht zusammen noch mal",
    ),
    "fr": Language(
        "hier aujourd'hui avant-hier avant dernier dernière janvier février mars avril mai juin "
        "juillet août septembre octobre novembre décembre lundi mardi mercredi jeudi vendredi "
        "samedi dimanche semaine mois jours ans",
        "qu que quoi de dont avons nous ai je tu vous on a le la les l un une en au du des est ce "
        "qui parlé discuté dit avez passé s il y moi dis montre",
    ),
    "es": Language(
        "ayer hoy anteayer pasado pasada hace enero febrero marzo abril mayo junio julio agosto "
        "septiembre octubre noviembre diciembre lunes martes miércoles jueves viernes sábado "
        "domingo semana mes días",
        "qué que de cuál hablamos hablado hemos discutimos dijimos dije dijiste el la los las un "
        "una en del pasó sobre nos me te",
    ),
    "it": Language(
        "ieri oggi scorso scorsa fa gennaio febbraio marzo aprile maggio giugno luglio agosto "
        "settembre ottobre novembre dicembre lunedì martedì mercoledì giovedì venerdì sabato "
        "domenica settimana giorni"
    ),
    "pt": Language(
        "ontem hoje passado passada há janeiro fevereiro março abril maio junho julho agosto "
        "setembro outubro novembro dezembro segunda-feira terça-feira semana dias"
    ),
    "nl": Language(
        "gisteren vandaag eergisteren vorige afgelopen geleden januari februari maart mei juni "
        "juli augustus oktober maandag dinsdag woensdag donderdag vrijdag zaterdag zondag"
    ),
    "ru": Language(
        "вчера сегодня позавчера назад января февраля марта апреля мая июня июля августа сентября "
        "октября ноября декабря понедельник вторник среду четверг пятницу субботу воскресенье"
    ),
    "ja": Language("昨日 今日 一昨日 先週 先月 去年 月曜日 火曜日 水曜日 木曜日 金曜日"),
    "zh": Language("昨天 今天 前天 上周 上个月 去年 天前 周前 月前 星期"),
}
_ENGLISH = frozenset(
    "the what when who how does did about which with from where tell show of and".split()
)
_CUES = {code: frozenset(language.cues.split()) for code, language in LANGUAGES.items()}
_UNSPACED = ("ja", "zh")


def language_of(text: str) -> str | None:
    """Return the language most of whose words of time stand in a text; None for English or none."""
    words = set(_WORD.findall(text.lower()))
    if words & _ENGLISH:
        return None
    counts = {code: len(cues & words) for code, cues in _CUES.items() if code not in _UNSPACED}
    for code in _UNSPACED:
        counts[code] = sum(cue in text for cue in _CUES[code])
    best = max(counts, key=lambda code: counts[code])
    return best if counts[best] else None


@cache
def is_installed() -> bool:
    """Whether dateparser is there; looked up once."""
    return find_spec("dateparser") is not None


def foreign_mentions(reader: Reader, language: str) -> Sequence[Mention]:
    """Read a text in one language; needs dateparser."""
    text = reader.text[:LONGEST]
    found: list[Mention] = []
    place = 0
    for words, moment, unit in _dates(text, language, reader.now):
        start = text.find(words, place)
        if start < 0:
            continue
        place = start + len(words)
        span = unit_span(unit, bounded(moment))
        found.append(Mention(start=start, end=place, span=span, confidence=_CONFIDENCE))
    return found


def strip_foreign_filler(remaining: str, language: str) -> str:
    """Leave out of what remains the language's words of time and of any question."""
    filler = frozenset(LANGUAGES[language].filler.split()) | _CUES[language]
    return " ".join(
        word for word in remaining.split() if not filler.issuperset(word.lower().split("'"))
    )


def _dates(text: str, language: str, now: datetime) -> list[tuple[str, datetime, Unit]]:
    # Slow to load, and needed for few queries.
    from dateparser.date import DateDataParser
    from dateparser.search import search_dates

    settings = {"RELATIVE_BASE": now, "PREFER_DATES_FROM": "past"}
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
        (words.strip(" ?!.,"), moment.replace(tzinfo=None), _unit(period))
        for (words, moment), period in zip(read, periods, strict=True)
        if any(letter.isalnum() for letter in words)
    ]


def _unit(period: str | None) -> Unit:
    return cast("Unit", period) if period in ("week", "month", "year") else "day"


# What is left of a query when time and the words of any question are taken away.

_FILLER_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")

# What a question about a time is made of, whatever the time; none of these is looked for.
_FILLER = frozenset(
    # questions and requests
    "what what's whats which who whom when how please tell show give list find get fetch recall "
    "remind remember summarize summarise summary summaries "
    "recap overview describe outline review repeat "
    "let know want need see look looking pull bring search do does did done doing can could would "
    "will should may might shall must ok okay hey hi hello so well also just again exactly "
    "actually really maybe perhaps only even yet still "
    # what was said
    "talk talked talking talks discuss discussed discussing discussion discussions chat chatted "
    "chatting chats speak spoke spoken speaking say said saying mention mentioned mentioning "
    "conversation conversations converse conversed dialogue dialogues dialog session sessions "
    "exchange exchanged cover covered come came up brought bring go went going gone over through "
    "happen happened happening happens occur occurred place took take meeting meetings call calls "
    "message messages memory memories note notes entry entries record records recorded stored "
    "log logs history share shared "
    "topic topics subject subjects thing things stuff sort sorts kind kinds type types matter "
    "matters something anything everything all any some every each point points detail details "
    "content contents highlight highlights main key one ones "
    # everything that carries nothing
    "a an the this that these those there here he she they him her them his their it its it's i me "
    "my mine we us our ours you your yours and or but not no nor "
    "if then than as at by for from in into of off on onto out to "
    "toward towards with within without about around between during since until till before after "
    "while through throughout across back ago ever be been being am are is was were has have had "
    "having i'd i've i'm we'd we've we're you've you're didn't don't did n't s t d ve re ll m "
    "over up down per together both more most very much many lot first last next previous past "
    "earlier later latest recent time times date dates day days on whole entire according per "
    "early late".split()
)


def strip_filler(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the words of a text outside of these spans that say what is looked for."""
    kept: list[str] = []
    taken = sorted(spans)
    for match in _FILLER_WORD.finditer(text):
        if any(start <= match.start() < end for start, end in taken):
            continue
        if match[0].lower().removesuffix("'s") not in _FILLER:
            kept.append(match[0])
    return " ".join(kept)


# `read_time`: the one entry, from a query to what it says about time.

LONGEST_QUERY = 2000
"""Characters of a query that are read; what follows says nothing about time."""
MOST = 20
"""Expressions of time that are read, the first ones."""

_RULES: tuple[Rule, ...] = (
    *dates.DATE_RULES,
    *sessions.RULES,
    *dates.WEEKDAY_RULES,
    *relative.RELATIVE_RULES,
    *relative.SEASON_RULES,
    *relative.VAGUE_RULES,
)
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
    zone = find_zone(timezone)
    text = query[:LONGEST_QUERY].translate(_PLAIN)
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
    remaining = strip_filler(text, spans)
    if language is None:
        return TimeReading(references, remaining)
    missing = None if is_installed() else MISSING
    return TimeReading(references, strip_foreign_filler(remaining, language), missing)


def _masked(match: re.Match[str]) -> str:
    """Hide a title or quotation within the text; all of it in quotes is not a quotation."""
    is_all = not match.string[: match.start()].strip() and not match.string[match.end() :].strip()
    return match[0] if is_all else "#" * len(match[0])


def _words(text: str) -> set[str]:
    found = _QUERY_WORD.findall(text.lower())
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
        return _apart(_matches(relative.EVENT_RULES, words, reader))[:MOST]
    dated = join_named_weekdays(_apart(found)[:MOST], reader)
    read = [narrow(each, reader) for each in dated]
    read = [direct(each, reader) for each in combine(_apart(read), reader)]
    happenings = (
        each
        for each in _matches(relative.EVENT_RULES, words, reader)
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
