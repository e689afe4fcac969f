"""Reads what somebody says about themselves: subject, auxiliary, verb, object and the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ekphory.training.english_verbs import (
    PARTICIPLES,
    plain_form_of_past,
    plain_form_of_third_person,
)

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\s*[;]\s+|,\s+(?:and|but|so)\s+(?=(?:i|my|we)\b)", re.I)
_OPENING = re.compile(
    r"^(?:(?:oh|well|yeah|yes|yep|no|nope|so|and|but|actually|hey|hi|hello|wow|haha|ok|okay|sure"
    r"|honestly|lately|recently|thanks|thank you|also|right|cool|awesome|great|nice)\b[,.!]*\s+)+",
    re.I,
)
_CONTRACTIONS: Mapping[str, str] = {
    "i'm": "I am",
    "im": "I am",
    "i've": "I have",
    "i'd": "I would",
    "i'll": "I will",
    "we're": "we are",
    "we've": "we have",
    "we'll": "we will",
    "name's": "name is",
}
_ADVERBS = frozenset(
    """really just also always usually actually recently finally even still often sometimes
    definitely totally currently absolutely especially already mostly only then now both probably
    generally mainly kinda certainly""".split()
)
_AUXILIARIES = {"am": "is", "are": "is", "is": "is", "was": "was", "were": "was"}
_PERFECT = {"have": "has", "had": "had"}
_MODALS = frozenset("can could will would should might must may".split())
_NEGATIONS = frozenset("not never don't didn't can't won't haven't isn't wasn't doesn't".split())
_OPEN_VERBS = frozenset(
    """like love enjoy want need plan hope try decide prefer hate start stop keep begin learn used
    go continue manage get have dream consider finish""".split()
)
_BOUNDARIES = frozenset(
    """in at to from on with for about by near during after before since because when while every
    last next yesterday today tomorrow tonight this and until through as""".split()
)
_OPINIONS = frozenset("think know see guess bet agree mean hope imagine suppose wonder".split())
_NOT_VERBS = frozenset("and or but the a an of in on at to for with my your it".split())


@dataclass(frozen=True, slots=True)
class Tail:
    """What follows the object: the word that opens it and all its words.

    >>> Tail("in", "in a factory")
    Tail(opener='in', text='in a factory')
    """

    opener: str
    text: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that a speaker makes about themselves or about what is theirs.

    Attributes:
        subject: Empty for the speaker, else what is theirs, such as `dad`.
        auxiliary: The word that opens its question: does, did, is, was, has, can, …
        verb: What follows the subject in the question, such as `love to bake`; empty for a copula.
        object: What follows up to the first preposition; may be empty.
        tails: The rest, cut before prepositions, conjunctions and words for a time.
    """

    subject: str
    auxiliary: str
    verb: str
    object: str
    tails: tuple[Tail, ...]


def statements(text: str) -> Iterator[Statement]:
    """Read every sentence that starts with `I`, `we` or `my …`; questions and others are left."""
    for sentence in _SENTENCE_END.split(text):
        if sentence.rstrip().endswith("?"):
            continue
        found = _statement(_OPENING.sub("", sentence.strip()))
        if found is not None:
            yield found


def _statement(sentence: str) -> Statement | None:
    words = _words(sentence)
    if len(words) < 3 or _NEGATIONS & {word.lower() for word in words}:
        return None
    first = words[0].lower()
    if first in ("i", "we"):
        return _own(words[1:])
    if first == "my":
        return _belonging(words[1:])
    return None


def _words(sentence: str) -> list[str]:
    words: list[str] = []
    for raw in sentence.replace("\u2019", "'").split():
        word = raw.strip('.,!?"()')
        if word:
            words.extend(_CONTRACTIONS.get(word.lower(), word).split())
    return [word for word in words if word.lower() not in _ADVERBS]


def _own(words: list[str]) -> Statement | None:
    head = words[0].lower()
    if len(words) < 2 or head in _OPINIONS:
        return None
    if head in _AUXILIARIES:
        return _with_auxiliary("", _AUXILIARIES[head], words[1:])
    if head in _MODALS:
        return _with_verb("", head, words[1:])
    if head in _PERFECT and _is_participle(words[1].lower()):
        return _with_verb("", _PERFECT[head], words[1:])
    return _in_one_word(head, words[1:])


def _in_one_word(verb: str, rest: list[str]) -> Statement | None:
    past = plain_form_of_past(verb)
    if past is not None:
        return _with_verb("", "did", [past, *rest])
    if not verb.isalpha() or verb in _NOT_VERBS:
        return None
    return _with_verb("", "does", [verb, *rest])


def _belonging(words: list[str]) -> Statement | None:
    for place in range(1, min(4, len(words) - 1)):
        subject, head = " ".join(words[:place]), words[place].lower()
        if head in _AUXILIARIES:
            return _with_auxiliary(subject, _AUXILIARIES[head], words[place + 1 :])
        past = plain_form_of_past(head)
        if past is not None:
            return _with_verb(subject, "did", [past, *words[place + 1 :]])
        present = plain_form_of_third_person(head)
        if present is not None and place + 1 < len(words) and head in ("has", "loves", "works"):
            return _with_verb(subject, "does", [present, *words[place + 1 :]])
    return None


def _with_auxiliary(subject: str, auxiliary: str, words: list[str]) -> Statement | None:
    if not words:
        return None
    if words[0].lower().endswith("ing") and len(words) > 1:
        return _with_verb(subject, auxiliary, words)
    return _cut(subject, auxiliary, "", words)


def _with_verb(subject: str, auxiliary: str, words: list[str]) -> Statement:
    taken = _words_of_verb([word.lower() for word in words])
    return _cut(subject, auxiliary, " ".join(words[:taken]), words[taken:])


def _words_of_verb(words: list[str]) -> int:
    """How many words `like to bake`, `enjoy baking` or `been baking` take of the sentence."""
    opening = words[0].removesuffix("ing")
    following = words[1] if len(words) > 1 else ""
    if following == "to" and len(words) > 2 and opening in _OPEN_VERBS:
        return 3
    if following.endswith("ing") and opening in _OPEN_VERBS:
        return 2
    return 2 if words[0] == "been" and following else 1


def _cut(subject: str, auxiliary: str, verb: str, words: list[str]) -> Statement:
    pieces: list[list[str]] = [[]]
    for word in words:
        if word.lower() in ("but", "so"):
            break
        if word.lower() in _BOUNDARIES:
            pieces.append([word])
        else:
            pieces[-1].append(word)
    tails = tuple(Tail(piece[0].lower(), " ".join(piece)) for piece in pieces[1:])
    return Statement(subject, auxiliary, verb, " ".join(pieces[0]), tails)


def _is_participle(word: str) -> bool:
    return word in PARTICIPLES or word.endswith("ed")
