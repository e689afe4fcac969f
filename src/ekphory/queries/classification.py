"""Says what kind of query it is, by rules over its words; no model, nothing stored.

The rules are data: `english_cues.py`, `english_shapes.py`, `foreign_cues.py`. Every rule that
speaks adds its weight to its intent; the heaviest wins if it reaches 1, else it is a `lookup`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ekphory.queries.complexity import complexity
from ekphory.queries.cue import Cue, Shape
from ekphory.queries.english_cues import ENGLISH_CUES
from ekphory.queries.english_shapes import ENGLISH_SHAPES
from ekphory.queries.foreign_cues import FOREIGN_CUES
from ekphory.queries.query_class import INTENTS, Intent, QueryClass, QueryHints
from ekphory.queries.words import Words, words_of

MOST_CHARACTERS = 2000
"""Characters of a query that are read, from its end."""
ENOUGH = 1.0
"""The weight at which an intent is taken."""

# A sentence ends where a word of five letters or more does, so that "Dr. Novak" stays whole.
_SENTENCE_END = re.compile(r"(?<=[?？!！。])\s*|(?<=[^\W\d_]{5}\.)\s+")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")

Rule = Cue | Shape
# The first words of phrases, each with the whole phrases that begin so, the longest first.
_Phrases = Mapping[str, Sequence[tuple[tuple[str, ...], Cue]]]


def classify_query(text: str) -> QueryClass:
    """Say what kind of query `text` is; see `QueryClass`.

    Of a text with statements and questions only the questions count. English first, with a few
    question words of German, French, Spanish, Chinese and Japanese; whatever else is a `lookup`.
    """
    asked = _asking_part(text[-MOST_CHARACTERS:])
    words = words_of(asked)
    found: list[Rule] = [*_cues_in(words, asked), *_shapes_in(words)]
    rules = list(dict.fromkeys(found))
    intent = _heaviest(rules)
    return QueryClass(
        intent,
        complexity(words),
        tuple(dict.fromkeys(rule.signal for rule in rules)),
        _hints(rules, intent),
    )


def _asking_part(text: str) -> str:
    sentences = [part for part in _SENTENCE_END.split(text) if part]
    asking = [part for part in sentences if part.rstrip().endswith(("?", "？"))]
    return " ".join(asking) if asking and len(asking) < len(sentences) else text


def _cues_in(words: Words, text: str) -> Iterator[Cue]:
    place = 0
    while place < len(words.lower):
        found = _phrase_at(words.lower, place)
        if found and (found[1].intent or found[1].hints.given):
            yield found[1]
        place += len(found[0]) if found else 1
    if not text.isascii():
        yield from (cue for mark, cue in _UNSPACED_MARKS if mark in text)


def _phrase_at(words: Sequence[str], place: int) -> tuple[tuple[str, ...], Cue] | None:
    for phrase, cue in _PHRASES.get(words[place], ()):
        if words[place : place + len(phrase)] == phrase:
            return phrase, cue
    return None


def _shapes_in(words: Words) -> Iterator[Shape]:
    return (shape for shape in ENGLISH_SHAPES if shape.pattern.search(words.kinds))


def _heaviest(rules: Iterable[Rule]) -> Intent:
    weights: dict[Intent, float] = dict.fromkeys(INTENTS, 0.0)
    for rule in rules:
        if rule.intent is not None:
            weights[rule.intent] += rule.weight
    # Of equal ones the later, which asks for more.
    best = max(reversed(INTENTS), key=weights.__getitem__)
    return best if weights[best] >= ENOUGH else "lookup"


def _hints(rules: Iterable[Rule], intent: Intent) -> QueryHints:
    strongest: dict[str, float] = defaultdict(float)
    for rule in rules:
        # What speaks for another intent was misread, or matters less.
        if rule.intent in (None, intent):
            for name, strength in rule.hints.given.items():
                strongest[name] = max(strongest[name], strength)
    return QueryHints(**strongest)


def _phrases_of(cue: Cue) -> list[str]:
    return [phrase.strip() for phrase in cue.phrases.split(",")]


def _by_first_word(cues: Iterable[Cue]) -> _Phrases:
    phrases: dict[str, list[tuple[tuple[str, ...], Cue]]] = defaultdict(list)
    for cue in cues:
        for phrase in _phrases_of(cue):
            if not _UNSPACED.search(phrase):
                words = words_of(phrase).lower
                phrases[words[0]].append((words, cue))
    return {
        first: sorted(found, key=lambda each: -len(each[0])) for first, found in phrases.items()
    }


_CUES = (*ENGLISH_CUES, *FOREIGN_CUES)
_PHRASES = _by_first_word(_CUES)
_UNSPACED_MARKS = tuple(
    (phrase, cue) for cue in _CUES for phrase in _phrases_of(cue) if _UNSPACED.search(phrase)
)
