"""Generated examples: memories, and hard cases that no other source has."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import islice
from random import Random
from typing import Any

from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory_lab.training.memories import (
    GeneratedMemory,
    MemorySample,
    NegativeKind,
    generate,
    templates,
)
from ekphory_lab.training.question_groups import BaseModel
from ekphory_lab.training.reranker.examples import CandidateKind, HardCase, RerankExample
from ekphory_lab.training.reranker.sources import draw_date, first_stage, name_time, name_time_apart
from ekphory_lab.training.texts import FIRST_NAMES

# Examples from generated memories: denials, numbers, entities, times, nearly the same words.
#
# A query's words for a time ("last spring") become a date, since a reranker reads dates and no
# ages.

MEMORIES_SOURCE = "memories"
_TOGETHER = 12
_SAMPLES = 200_000

HARD_CASE_OF: Mapping[NegativeKind, HardCase] = {
    "temporal": "temporal_interference",
    "type_confusion": "lexical_overlap",
    "topic_drift": "lexical_overlap",
    "entity_confusion": "entity_confusion",
    "negation": "inverse",
    "number": "numerical",
    "near_duplicate": "lexical_overlap",
}


def memory_examples(base: BaseModel, *, seed: int) -> Iterator[RerankExample]:
    """Return examples of the training half, many but not without end.

    Args:
        base: The dense half of the first stage.
        seed: Decides everything.

    Raises:
        MissingExtra: bm25s is not installed.
    """
    random = Random(f"{seed}:{MEMORIES_SOURCE}")  # noqa: S311  no secret
    samples = generate("train", seed=seed, count=_SAMPLES)
    while batch := list(islice(samples, _TOGETHER)):
        yield from _examples(batch, base, random)


def _examples(
    samples: Sequence[MemorySample], base: BaseModel, random: Random
) -> Iterator[RerankExample]:
    memories = [memory for sample in samples for memory in sample.memories]
    dated = [dated_query(sample, draw_date(random)) for sample in samples]
    view = first_stage([memory.text for memory in memories], [query.text for query in dated], base)
    first = 0
    for place, (sample, query) in enumerate(zip(samples, dated, strict=True)):
        kinds: list[CandidateKind] = ["answer"]
        kinds += [HARD_CASE_OF[negative.kind] for negative in sample.negatives]
        own = range(first, first + len(kinds))
        first += len(kinds)
        other = random.choice([row for row in range(len(memories)) if row not in own])
        rows = [*zip(own, kinds, strict=True), (other, "random")]
        passages = {row: _passage(memories[row], query.now) for row, _ in rows}
        candidates = [
            view.candidate(place, row, passages[row], kind, judged=kind != "random")
            for row, kind in rows
        ]
        shuffled = tuple(random.sample(candidates, len(candidates)))
        yield RerankExample(MEMORIES_SOURCE, query, shuffled)


def dated_query(sample: MemorySample, now: datetime) -> RerankQuery:
    """Put the date that is meant in the place of the sample's words for a time.

    It is the widest of year, month and day that holds the answer and no `temporal` negative.
    """
    words = _words_for_time(sample.query)
    if words is None:
        return RerankQuery(sample.query, now=now)
    at = _at(sample.positive, now)
    others = [_at(each.memory, now) for each in sample.negatives if each.kind == "temporal"]
    named = name_time_apart(at, others) or name_time(at, "day")
    return RerankQuery(sample.query.replace(f" {words}", f" {named.words}"), now=now)


def _words_for_time(query: str) -> str | None:
    """Return the longest words for a time that the query holds; None where it names none."""
    known = (words for phrase in templates("train").times for words in phrase.words)
    return max((words for words in known if f" {words}" in query), key=len, default=None)


def _passage(memory: GeneratedMemory, now: datetime | None) -> RerankPassage:
    at = None if now is None else _at(memory, now)
    return RerankPassage(memory.text, at=at, type=memory.type)


def _at(memory: GeneratedMemory, now: datetime) -> datetime:
    return now - timedelta(days=memory.days_ago)


# Generated examples of what no other source has: causal reversal, granularity, multi-hop.
#
# The words are in `hard_case_words.toml`. Every example has the sentences of three people.

HARD_CASES_SOURCE = "hard_cases"
_DATED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class HardCaseText:
    """One question with what is said.

    Attributes:
        question: What is asked.
        said: `speaker: text` with what it is.
    """

    question: str
    said: tuple[tuple[str, CandidateKind], ...]


def hard_case_examples(base: BaseModel, *, seed: int) -> Iterator[RerankExample]:
    """Return examples without end.

    Args:
        base: The dense half of the first stage.
        seed: Decides everything.

    Raises:
        MissingExtra: bm25s is not installed.
    """
    random = Random(f"{seed}:{HARD_CASES_SOURCE}")  # noqa: S311  no secret
    texts = hard_case_texts(random)
    while True:
        yield from _hard_case_examples(list(islice(texts, _TOGETHER)), base, random)


def hard_case_texts(random: Random) -> Iterator[HardCaseText]:
    """Return questions with what is said, without end, the three kinds in turn."""
    while True:
        for make in (causal_reversal, granularity, multi_hop):
            yield make(random)


def causal_reversal(random: Random) -> HardCaseText:
    """Make cause and effect, and the same the other way round."""
    words = _words()
    name, other = random.sample(FIRST_NAMES, 2)
    effect, cause, third = (text.split(" > ") for text in random.sample(words["causes"], 3))
    sentence = random.choice(words["cause_sentences"])
    if random.random() < 2 / 3:
        known = effect
        question = random.choice(words["cause_questions"]).format(
            name=name, effect=effect[1].format(their="their")
        )
        beside = sentence.format(effect=third[0], cause=effect[0])
    else:
        known = cause
        question = random.choice(words["effect_questions"]).format(
            name=name, cause=cause[0].replace(" my ", " their ")
        )
        beside = sentence.format(effect=cause[0], cause=third[0])
    incomplete = random.choice(words["cause_incomplete"]).format(known=known[0])
    said: tuple[tuple[str, CandidateKind], ...] = (
        (f"{name}: {sentence.format(effect=effect[0], cause=cause[0])}", "answer"),
        (f"{name}: {sentence.format(effect=cause[0], cause=effect[0])}", "causal_reversal"),
        (f"{name}: {beside}", "causal_reversal"),
        (f"{other}: {sentence.format(effect=effect[0], cause=third[0])}", "entity_confusion"),
        (f"{name}: {incomplete}", "lexical_overlap"),
        (f"{other}: {question}", "lexical_overlap"),
    )
    return HardCaseText(question, said)


def granularity(random: Random) -> HardCaseText:
    """Make the fine answer beside coarser ones, and beside the fine one of somebody else."""
    grain = random.choice(_words()["grains"])
    name, other = random.sample(FIRST_NAMES, 2)
    first, second = (text.split(" > ") for text in random.sample(grain["values"], 2))
    sentences = random.sample(grain["sentences"], len(grain["sentences"]))
    said: list[tuple[str, CandidateKind]] = [
        (f"{name}: {_capital(sentences[0].format(x=first[0]))}", "answer"),
        (f"{name}: {_capital(sentences[0].format(x=first[1]))}", "granularity"),
        (f"{name}: {_capital(sentences[1].format(x=first[1]))}", "granularity"),
        (f"{other}: {_capital(sentences[0].format(x=second[0]))}", "entity_confusion"),
        (f"{other}: {_capital(sentences[1].format(x=second[1]))}", "entity_confusion"),
    ]
    return HardCaseText(random.choice(grain["questions"]).format(name=name), tuple(said))


def multi_hop(random: Random) -> HardCaseText:
    """Make who somebody is and what that person says, beside the same of others."""
    words = _words()
    name, other, third = random.sample(FIRST_NAMES, 3)
    relation, second = random.sample(words["relations"], 2)
    fact = random.choice(words["facts"])
    values = random.sample(fact["values"], 3)
    bridge = random.choice(words["bridges"])
    sentence = random.choice(fact["sentences"])

    def states(who: str, value: str) -> str:
        return f"{who}: {_capital(sentence.format(x=value))}"

    def knows(who: str, relation: str, whom: str) -> str:
        return f"{who}: {_capital(bridge.format(relation=relation, other=whom))}"

    said: tuple[tuple[str, CandidateKind], ...] = (
        (knows(name, relation, other), "answer"),
        (states(other, values[0]), "answer"),
        (states(third, values[1]), "multi_hop"),
        (states(name, values[2]), "multi_hop"),
        (knows(name, second, third), "multi_hop"),
        (knows(third, relation, name), "multi_hop"),
    )
    question = random.choice(fact["questions"]).format(name=name, relation=relation)
    return HardCaseText(question, said)


def _hard_case_examples(
    texts: Sequence[HardCaseText], base: BaseModel, random: Random
) -> Iterator[RerankExample]:
    said = [passage for text in texts for passage, _ in text.said]
    view = first_stage(said, [text.question for text in texts], base)
    first = 0
    for place, text in enumerate(texts):
        at = draw_date(random) if random.random() < _DATED_SHARE else None
        own = range(first, first + len(text.said))
        first += len(text.said)
        strange = random.sample([row for row in range(len(said)) if row not in own], 3)
        kinds: list[CandidateKind] = [kind for _, kind in text.said]
        kinds += ["random"] * len(strange)
        candidates = [
            view.candidate(place, row, RerankPassage(said[row], at=at), kind, judged=True)
            for row, kind in zip([*own, *strange], kinds, strict=True)
        ]
        shuffled = tuple(random.sample(candidates, len(candidates)))
        yield RerankExample(HARD_CASES_SOURCE, RerankQuery(text.question, now=at), shuffled)


@cache
def _words() -> Mapping[str, Any]:
    file = files("ekphory_lab.training.reranker").joinpath("hard_case_words.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
