"""Relations of one thing to another, as words: which there are, and how they are worded."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ekphory.retrieval.query import ENOUGH, classify_query

_RULES = tomllib.loads(files(__package__).joinpath("question_rules.toml").read_text("utf-8"))
WORDS: Mapping[str, frozenset[str]] = {
    name: frozenset(words.split()) for name, words in _RULES["words"].items()
}
"""Sets of words; `question_rules.toml` says what each is."""

# Words for comparing: folded, and only those that mean something.

_NO_MEANING = WORDS["particles"] | WORDS["empty"]
_WORD = re.compile(r"[^\W_]+")


def folded(text: str) -> str:
    """Return a text in lower case and without accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(mark for mark in decomposed if not unicodedata.combining(mark))


def words_in(text: str) -> list[str]:
    """Return the words of a text, folded, in order."""
    return _WORD.findall(folded(text))


def meaning_words(text: str) -> frozenset[str]:
    """Return the words that tell one name from another."""
    words = frozenset(words_in(text))
    return words - _NO_MEANING or words


# Relations


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation, such as `director`.

    Attributes:
        word: As the question has it.
        cues: Words and phrases that stand beside the name of the one that is meant.
        through: The relations that it is made of, the nearest first; empty for a simple one.
        is_person: Whether somebody is meant, and no place.
    """

    word: str
    cues: tuple[str, ...]
    through: tuple[str, ...] = ()
    is_person: bool = False


_CUES: Mapping[str, tuple[str, ...]] = {
    word: tuple(" ".join(cue.split()) for cue in cues.split(","))
    for word, cues in _RULES["relations"].items()
}
_SAME: Mapping[str, str] = _RULES["same"]
_THROUGH: Mapping[str, tuple[str, ...]] = {
    word: tuple(steps) for word, steps in _RULES["through"].items()
}
_KNOWN = frozenset(_CUES) | frozenset(_SAME) | frozenset(_THROUGH)


def is_relation(word: str) -> bool:
    """Whether this word, in the singular or plural, says what one thing is to another.

    Those that are listed do, and words that end as those for people who do something.
    """
    said = folded(word)
    return _singular(said) is not None or _does_something(said)


def _does_something(word: str) -> bool:
    if len(word) < 6 or not word.endswith(("er", "or", "ist")):
        return False
    return word not in WORDS["no_doers"] and _KIND_OF.get(word, "r") in "rp"


def _doing(word: str) -> tuple[str, ...]:
    """Return what memories may say of a doer: "illustrated by" of an illustrator."""
    if not (_does_something(word) and word.endswith(("er", "or"))):
        return ()
    stem = word[:-2]
    return (f"{stem}ed by", f"{stem}ed", f"{stem}es", f"{stem}s")


def relation(word: str) -> Relation:
    """Return the relation of this word; of a word that is not listed the word itself is the cue."""
    said = folded(word)
    name = _singular(said) or said
    cues = (name, *(_CUES.get(_SAME.get(name, name)) or _doing(name)))
    is_person = name not in WORDS["places"] and (name in _KNOWN or _does_something(name))
    return Relation(name, tuple(dict.fromkeys(cues)), _THROUGH.get(name, ()), is_person)


def _singular(word: str) -> str | None:
    """Return the listed word that this one is, or is the plural of."""
    endings = (("", ""), ("s", ""), ("ies", "y"), ("ren", ""), ("ves", "fe"), ("es", ""))
    for ending, singular in endings:
        if word.endswith(ending):
            stem = word[: len(word) - len(ending)] + singular
            if stem in _KNOWN:
                return stem
    return None


# How a question describes one thing through another, for questions of which no path is known: the
# kinds of its words, one letter a word, and patterns over those letters.

_OTHER = "x"
_IS_POSSESSIVE = "'"
_PARTICIPLE = "h"
_NUMBER = "#"
_DATE = "n"
_RELATIVE = "k"

# A word in several kinds has the first of them.
_KIND_OF: Mapping[str, str] = {
    word: letter for letter, words in reversed(_RULES["kinds"].items()) for word in words.split()
}
_OPENS_A_CLAUSE = frozenset({"who", "whom", "which", "whose", "where"})
_NAMED_MONTHS = frozenset({"May", "March"})
"""Months only where they are written as names."""
# A mark between words counts as a word, so that no pattern reaches across it unawares.
_QUESTION_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[?!;,](?=\s+\w)")
_YEAR = re.compile(r"(?:19|20)\d\d")
_NOUNS = frozenset("xprFh")
_BEFORE_IS = frozenset("wWQHIiT")


def kinds_of(text: str) -> str:
    """Return the kind of each word of a text, possessives split off."""
    composed = text if text.isascii() else unicodedata.normalize("NFC", text).replace("’", "'")
    words = [part for word in _QUESTION_WORD.findall(composed) for part in _split_possessive(word)]
    kinds: list[str] = []
    for place, written in enumerate(words):
        word = written.lower()
        kind = _KIND_OF.get(word, _OTHER)
        if word == "'s":
            kind = _IS_POSSESSIVE
        elif word.isdigit():
            kind = _DATE if _YEAR.fullmatch(word) else _NUMBER
        elif place and written in _NAMED_MONTHS:
            kind = _DATE
        elif kind == _OTHER and word.endswith("ed") and len(word) > 4:
            kind = _PARTICIPLE
        elif word in _OPENS_A_CLAUSE and kinds and kinds[-1] in _NOUNS:
            kind = _RELATIVE
        kinds.append(kind)
    return "".join(kinds)


def _split_possessive(word: str) -> tuple[str, ...]:
    stem, apostrophe, ending = word.rpartition("'")
    if not apostrophe or ending not in ("s", "S"):
        return (word,)
    is_verb = _KIND_OF.get(stem.lower(), _OTHER) in _BEFORE_IS or stem.lower() in ("here", "there")
    return (stem, "is" if is_verb else "'s")


SHAPES: Sequence[Mapping[str, Any]] = _RULES["shape"]


def describes_one_through_another(question: str) -> bool:
    """Whether something must be found first, as in "the manager of the person who wrote it"."""
    kinds = kinds_of(question)
    weight = sum(shape["weight"] for shape in SHAPES if re.search(shape["pattern"], kinds))
    return weight >= ENOUGH and classify_query(question).intent in ("lookup", "chain")
