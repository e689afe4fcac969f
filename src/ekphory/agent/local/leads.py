"""Leads: names in a memory that may be what the next step of a question looks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ekphory.agent.local.rating import Rated, aboutness
from ekphory.agent.question.names import Name, names_in
from ekphory.agent.question.relations import Relation
from ekphory.agent.question.words import folded, meaning_words
from ekphory.types import Hit

_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")
_INITIAL = re.compile(r"\b[A-Z]\.")
_LONGEST = 4000
_ORIGIN = re.compile(
    r"(?:\w+(?:ian|ean|ish|ese|ican|ench)|German|Dutch|Greek|Swiss|Czech|Thai|Iraqi|Israeli|"
    r"Pakistani|Bengali|Tamil|Catalan|Roman|Norman|Saxon|Mexican|Texan|Indian)"
)
_BRACKETS = re.compile(r"\s*\([^()]*\)")
_PLACED = re.compile(r"\b(?:in|on|at|from|near|to|into|through) (?:the )?$", re.IGNORECASE)
_PLACE_FOR_PERSON = 0.3
_SPEAKER = 0.4
_OTHER_SENTENCE = 0.35
_LEADING_NUMBER = re.compile(r"\d+ ")


@dataclass(frozen=True, slots=True)
class Lead:
    """A name that a memory gives for a step.

    Attributes:
        name: The name as the memory writes it.
        hit: The memory.
        score: How well it fits, above 0; comparable within one step.
    """

    name: str
    hit: Hit
    score: float


def leads(
    evidence: Sequence[Rated], *, entity: str, relation: Relation, known: frozenset[str]
) -> list[Lead]:
    """Find what may stand in this relation to an entity, the best first, each name once.

    Args:
        evidence: What was found for the step.
        entity: What the step starts from.
        relation: What is sought.
        known: Words of the question, which name nothing new.
    """
    best: dict[frozenset[str], Lead] = {}
    speakers = {
        meaning_words(each.hit.memory.producer) for each in evidence if each.hit.memory.producer
    }
    for rated in evidence:
        memory = rated.hit.memory
        about = aboutness(memory.indexed_text[:_LONGEST], entity) * rated.weight
        # Who says something is seldom whom it is about.
        for name, fit in _fits(memory.text[:_LONGEST], entity, relation, known):
            words = meaning_words(name)
            # In a dialogue people call each other by name, whatever they speak of.
            factor = _SPEAKER if words in speakers else 1.0
            lead = Lead(name, rated.hit, about * fit * factor)
            if words not in best or best[words].score < lead.score:
                best[words] = lead
    return sorted(best.values(), key=lambda lead: -lead.score)


def states(text: str, relation: Relation) -> bool:
    """Whether a text has words for a relation."""
    return next(_cue_places(folded(text), relation), None) is not None


def without_brackets(name: str) -> str:
    """Leave out what tells a name from others of the same words, as in "Imagine (song)"."""
    return _BRACKETS.sub("", name).strip() or name


def _fits(
    text: str, entity: str, relation: Relation, known: frozenset[str]
) -> Iterator[tuple[str, float]]:
    """Give the names of a text, each in its fullest form, and how well each fits."""
    lower = folded(text)
    if len(lower) != len(text):
        lower = text.lower()
    own = meaning_words(without_brackets(entity))
    names = [name for name in names_in(text, style="memory") if _may_be_meant(text, name)]
    cues = list(_cue_places(lower, relation))
    for place, name in enumerate(names):
        if name.words <= known or name.words <= own:
            continue
        nearness = max((_nearness(text, name, cue) for cue in cues), default=0.0)
        fullest = max(
            (
                other.text
                for other in names
                if name.words <= other.words and not other.words <= known
            ),
            key=len,
        )
        fit = 0.05 / (1 + 0.2 * place) + nearness
        if relation.is_person and _is_place(text, name):
            fit *= _PLACE_FOR_PERSON
        yield _LEADING_NUMBER.sub("", fullest), fit


def _is_place(text: str, name: Name) -> bool:
    """Whether a name looks like one of a place: "in Delft", "Wolvenstraat 27"."""
    return bool(_PLACED.search(text[: name.start])) or name.text[-1].isdigit()


def _may_be_meant(text: str, name: Name) -> bool:
    """Whether it is a name of something, not where something comes from or a number."""
    if not any(letter.isalpha() for letter in name.text):
        return False
    last = name.text.split()[-1]
    follows = text[name.end : name.end + 2]
    return not (_ORIGIN.fullmatch(last) and follows[:1] in (" ", "-") and follows[1:].islower())


@dataclass(frozen=True, slots=True)
class _CuePlace:
    start: int
    end: int
    weight: float
    leads_on: bool


@cache
def _patterns(relation: Relation) -> tuple[tuple[re.Pattern[str], float, bool], ...]:
    """Give, for every cue, how it is found, its weight, and whether the name can only follow."""
    found = []
    for order, cue in enumerate(relation.cues):
        spelt = re.escape(cue).replace(r"\ …\ ", r" [^.\n]{3,90}? ").replace("…", ".")
        only_after = cue == "by" or cue.endswith((" of", " by", " to", " in", " and", " at"))
        found.append((re.compile(rf"\b{spelt}\b"), 1.0 - 0.04 * min(order, 8), only_after))
    return tuple(found)


def _cue_places(text: str, relation: Relation) -> Iterator[_CuePlace]:
    breaks = [found.start() for found in _SENTENCE_END.finditer(text)]
    for pattern, weight, only_after in _patterns(relation):
        for found in pattern.finditer(text):
            before = sum(place < found.start() for place in breaks)
            yield _CuePlace(found.start(), found.end(), weight / (1 + 0.1 * before), only_after)


def _nearness(text: str, name: Name, cue: _CuePlace) -> float:
    if name.start >= cue.end:
        between, factor = text[cue.end : name.start], 1.0
    elif name.end <= cue.start and not cue.leads_on:
        between, factor = text[name.end : cue.start], 0.6
    else:
        return 0.0
    if _SENTENCE_END.search(_INITIAL.sub("", between)):
        if cue.leads_on:
            return 0.0
        factor *= _OTHER_SENTENCE
    return cue.weight * factor / (1 + 0.25 * len(_WORD.findall(between)))
