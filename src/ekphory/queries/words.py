"""Splits a query into words, and says of which kind each one is."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from ekphory.queries.word_kinds import (
    DATE,
    KIND_OF,
    NAMED_MONTHS,
    NUMBER,
    OPENS_A_CLAUSE,
    OTHER,
    PARTICIPLE,
    POSSESSIVE,
    RELATIVE,
)

# A mark between words counts as a word, so that no pattern reaches across it unawares.
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[?!;,](?=\s+\w)")
_YEAR = re.compile(r"(?:19|20)\d\d")
_NOUNS = frozenset("xprFh")
_BEFORE_IS = frozenset("wWQHIiT")


@dataclass(frozen=True, slots=True)
class Words:
    """A query's words.

    Attributes:
        given: As written, possessives split off.
        lower: In lower case.
        kinds: One letter a word, as in `word_kinds.py`.
    """

    given: tuple[str, ...]
    lower: tuple[str, ...]
    kinds: str


def words_of(text: str) -> Words:
    """Split a text into words."""
    composed = text if text.isascii() else unicodedata.normalize("NFC", text).replace("’", "'")
    given: list[str] = []
    for word in _WORD.findall(composed):
        given.extend(_parts(word))
    lower = tuple(word.lower() for word in given)
    return Words(tuple(given), lower, _kinds(given, lower))


def _parts(word: str) -> tuple[str, ...]:
    stem, apostrophe, ending = word.rpartition("'")
    if not apostrophe or ending not in ("s", "S"):
        return (word,)
    is_verb = KIND_OF.get(stem.lower(), OTHER) in _BEFORE_IS or stem.lower() in ("here", "there")
    return (stem, "is" if is_verb else "'s")


def _kinds(given: Sequence[str], lower: Sequence[str]) -> str:
    kinds: list[str] = []
    for place, word in enumerate(lower):
        kind = KIND_OF.get(word, OTHER)
        if word == "'s":
            kind = POSSESSIVE
        elif word.isdigit():
            kind = DATE if _YEAR.fullmatch(word) else NUMBER
        elif place and given[place] in NAMED_MONTHS:
            kind = DATE
        elif kind == OTHER and word.endswith("ed") and len(word) > 4:
            kind = PARTICIPLE
        elif word in OPENS_A_CLAUSE and kinds and kinds[-1] in _NOUNS:
            kind = RELATIVE
        kinds.append(kind)
    return "".join(kinds)
