"""Makes the memories that resemble the answer and are none: one rule for each kind."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ekphory.training.memories.ages import (
    draw_age,
    draw_age_inside,
    draw_age_outside,
    draw_older_age,
)
from ekphory.training.memories.question import Question
from ekphory.training.memories.sample import (
    NEGATIVE_KINDS,
    NEGATIVES,
    GeneratedMemory,
    HardNegative,
    NegativeKind,
)
from ekphory.training.memories.situation import (
    Situation,
    with_other_details,
    with_other_numbers,
    with_other_person,
    with_other_place,
    with_other_topic,
)
from ekphory.training.memories.templates import Kind, Stress, Templates
from ekphory.training.memories.vocabulary import Vocabulary
from ekphory.training.memories.wording import Wording, draw_wording, opposite, stressed

_RARE: tuple[NegativeKind, ...] = ("temporal", "number", "number")
_DETAILS = frozenset({"thing", "choice", "task", "event"})
_SAME_TIME_SHARE = 0.6
_SAME_WORDS_SHARE = 0.7
_UNIMPORTANT = 0.5
_ECHO_SHARE = 0.25
_CLAIMED_BY_NOBODY = 0.15
_NOTHING_ASKED: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Answer:
    """A question with its answer, and what they were made of.

    Attributes:
        question: What is asked.
        situation: What question and answer are about.
        wording: How the answer is put.
        memory: The answer.
        words: The words of this half.
        templates: The wordings of this half.
    """

    question: Question
    situation: Situation
    wording: Wording
    memory: GeneratedMemory
    words: Vocabulary
    templates: Templates


def draw_negatives(source: random.Random, answer: Answer) -> tuple[HardNegative, ...]:
    """Draw `NEGATIVES` memories: one of each kind that the query allows, then more of these."""
    kinds = _possible(answer.question)
    # The kinds that few queries allow come more often where they can.
    more = (*kinds, *(kind for kind in _RARE if kind in kinds))
    taken = {(answer.memory.text, answer.memory.days_ago)}
    found: list[HardNegative] = []
    while len(found) < NEGATIVES:
        kind = kinds[len(found)] if len(found) < len(kinds) else source.choice(more)
        memory = _MAKERS[kind](source, answer)
        if kind != "temporal" and memory.text == answer.memory.text:
            continue
        if (memory.text, memory.days_ago) not in taken:
            taken.add((memory.text, memory.days_ago))
            found.append(HardNegative(kind, memory))
    return tuple(found)


def _possible(question: Question) -> tuple[NegativeKind, ...]:
    missing: set[NegativeKind] = set()
    if question.time is None:
        missing.add("temporal")
    if not question.template.asked_numbers:
        missing.add("number")
    return tuple(kind for kind in NEGATIVE_KINDS if kind not in missing)


def _temporal(source: random.Random, answer: Answer) -> GeneratedMemory:
    question = answer.question
    wording = answer.wording
    if source.random() > _SAME_WORDS_SHARE:
        wording = draw_wording(source, question.kind, question.template.asked, ())
        wording = opposite(source, wording) if question.aim == "denial" else wording
    days_ago = draw_age(source)
    if question.time is not None:
        days_ago = draw_age_outside(source, question.time)
    return wording.memory(answer.situation, days_ago)


def _type_confusion(source: random.Random, answer: Answer) -> GeneratedMemory:
    question = answer.question
    kinds = [kind for kind in _all_kinds(answer) if kind.type != question.kind.type]
    stresses = answer.templates.stresses
    if question.aim == "importance":
        kinds, stresses = _unimportant(kinds), _softening(stresses)
    kind = source.choice(kinds)
    asked = question.template.asked & _DETAILS
    wording = draw_wording(source, kind, asked, stresses)
    return wording.memory(answer.situation, _any_age(source, answer))


def _topic_drift(source: random.Random, answer: Answer) -> GeneratedMemory:
    situation = with_other_topic(source, answer.words, answer.situation)
    return answer.wording.memory(situation, _any_age(source, answer))


def _entity_confusion(source: random.Random, answer: Answer) -> GeneratedMemory:
    if "place" in answer.question.template.slots and source.random() < _SAME_WORDS_SHARE:
        situation = with_other_place(source, answer.words, answer.situation)
    else:
        situation = with_other_person(source, answer.words, answer.situation)
    return answer.wording.memory(situation, _any_age(source, answer))


def _negation(source: random.Random, answer: Answer) -> GeneratedMemory:
    days_ago = _any_age(source, answer)
    if answer.question.time is None:
        # Were it newer, the answer would be outdated.
        days_ago = draw_older_age(source, answer.memory.days_ago)
    return opposite(source, answer.wording).memory(answer.situation, days_ago)


def _number(source: random.Random, answer: Answer) -> GeneratedMemory:
    situation = with_other_numbers(source, answer.situation)
    return answer.wording.memory(situation, _any_age(source, answer))


def _near_duplicate(source: random.Random, answer: Answer) -> GeneratedMemory:
    if source.random() < _ECHO_SHARE:
        return _echo(source, answer)
    if answer.question.aim == "importance":
        return _triviality(source, answer)
    if answer.question.template.asked & _DETAILS and source.random() < 1 / 2:
        situation = with_other_details(source, answer.situation)
        return answer.wording.memory(situation, _any_age(source, answer))
    return _hearsay(source, answer)


def _triviality(source: random.Random, answer: Answer) -> GeneratedMemory:
    kind = source.choice(_unimportant(_all_kinds(answer)))
    wording = draw_wording(source, kind, _NOTHING_ASKED, ())
    wording = stressed(source, wording, _softening(answer.templates.stresses))
    return wording.memory(answer.situation, _any_age(source, answer))


def _echo(source: random.Random, answer: Answer) -> GeneratedMemory:
    question = answer.question
    ask = question.text if source.random() < 1 / 2 else question.text_without_time
    asker = source.choice(answer.words.people)
    text = source.choice(answer.templates.echoes).format(
        asker=asker, query=ask(answer.situation).rstrip("?") + "?"
    )
    return GeneratedMemory(text, _any_age(source, answer), "episodic", _CLAIMED_BY_NOBODY)


def _hearsay(source: random.Random, answer: Answer) -> GeneratedMemory:
    asker = source.choice(answer.words.people)
    text = source.choice(answer.templates.hearsays).format(asker=asker, text=answer.memory.text)
    return GeneratedMemory(text, _any_age(source, answer), answer.memory.type, _CLAIMED_BY_NOBODY)


def _any_age(source: random.Random, answer: Answer) -> float:
    time = answer.question.time
    if time is not None and source.random() < _SAME_TIME_SHARE:
        return draw_age_inside(source, time)
    return draw_age(source)


def _all_kinds(answer: Answer) -> list[Kind]:
    return [kind for kinds in answer.templates.kinds.values() for kind in kinds]


def _unimportant(kinds: list[Kind]) -> list[Kind]:
    return [kind for kind in kinds if kind.importance <= _UNIMPORTANT]


def _softening(stresses: tuple[Stress, ...]) -> tuple[Stress, ...]:
    return tuple(stress for stress in stresses if stress.change < 0)


_MAKERS: Mapping[NegativeKind, Callable[[random.Random, Answer], GeneratedMemory]] = {
    "temporal": _temporal,
    "type_confusion": _type_confusion,
    "topic_drift": _topic_drift,
    "entity_confusion": _entity_confusion,
    "negation": _negation,
    "number": _number,
    "near_duplicate": _near_duplicate,
}
