"""Relations of one thing to another, as words: which there are, and how they are worded."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

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
    return word not in WORDS["no_doers"]


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
