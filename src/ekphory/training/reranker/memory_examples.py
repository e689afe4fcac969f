"""Examples from generated memories: denials, numbers, entities, times, nearly the same words.

A query's words for a time ("last spring") become a date, since a reranker reads dates and no ages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from random import Random

from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.training.memories.generate import generate
from ekphory.training.memories.sample import GeneratedMemory, MemorySample, NegativeKind
from ekphory.training.memories.templates import templates
from ekphory.training.reranker.dates import draw_date, name_time, name_time_apart
from ekphory.training.reranker.examples import Candidate, CandidateKind, HardCase, RerankExample
from ekphory.training.reranker.first_stage import first_stage
from ekphory.training.teacher import BaseModel

SOURCE = "memories"
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
    """Give examples of the training half, many but not without end.

    Args:
        base: The dense half of the first stage.
        seed: Decides everything.

    Raises:
        MissingExtra: bm25s is not installed.
    """
    random = Random(f"{seed}:{SOURCE}")  # noqa: S311  no secret
    samples = generate("train", seed=seed, count=_SAMPLES)
    while batch := list(islice(samples, _TOGETHER)):
        yield from _examples(batch, base, random)


def _examples(
    samples: Sequence[MemorySample], base: BaseModel, random: Random
) -> Iterator[RerankExample]:
    memories = [memory for sample in samples for memory in _memories(sample)]
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
        candidates = [
            Candidate(
                _passage(memories[row], query.now),
                kind == "answer",
                kind,
                float(view.lexical[place, row]),
                float(view.dense[place, row]),
                judged=kind != "random",
            )
            for row, kind in rows
        ]
        shuffled = tuple(random.sample(candidates, len(candidates)))
        yield RerankExample(SOURCE, query, shuffled)


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
    """Give the longest words for a time that the query holds; None where it names none."""
    known = (words for phrase in templates("train").times for words in phrase.words)
    return max((words for words in known if f" {words}" in query), key=len, default=None)


def _memories(sample: MemorySample) -> list[GeneratedMemory]:
    return [sample.positive, *(each.memory for each in sample.negatives)]


def _passage(memory: GeneratedMemory, now: datetime | None) -> RerankPassage:
    at = None if now is None else _at(memory, now)
    return RerankPassage(memory.text, at=at, type=memory.type)


def _at(memory: GeneratedMemory, now: datetime) -> datetime:
    return now - timedelta(days=memory.days_ago)
