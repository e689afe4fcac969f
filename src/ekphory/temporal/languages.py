"""Times in other languages than English, read by dateparser where it is installed."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from typing import cast

from ekphory.temporal.almanac import Unit, bounded, unit_span
from ekphory.temporal.mention import Mention, Reader

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
    """Give the language most of whose words of time stand in a text; None for English or none."""
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


def without_foreign_filler(remaining: str, language: str) -> str:
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
