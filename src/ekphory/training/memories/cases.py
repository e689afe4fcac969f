"""Generated samples as ranking cases and as labelled texts, for `ekphory eval agentmem`."""

from __future__ import annotations

from collections.abc import Iterator

from ekphory.evaluation.agentmem.cases import Candidate, CaseSet, Distractor, RankingCase
from ekphory.evaluation.agentmem.labels import LabelledText
from ekphory.training.memories.generate import generate
from ekphory.training.memories.sample import GeneratedMemory, MemorySample

GENERATED = "generated"


def generated_cases(*, count: int, seed: int) -> CaseSet:
    """Make a case of each sample of the test half.

    Raises:
        InvalidInput: `count` is negative.
    """
    samples = generate("test", seed=seed, count=count)
    return CaseSet(
        name=GENERATED,
        cases=tuple(_case(number, sample) for number, sample in enumerate(samples, start=1)),
        origin={"generator": "ekphory.training.memories", "split": "test", "seed": seed},
    )


def generated_labels(*, count: int, seed: int) -> tuple[LabelledText, ...]:
    """Give every text of the samples of the test half once, with its importance and type."""
    found: dict[str, LabelledText] = {}
    for sample in generate("test", seed=seed, count=count):
        for memory in _memories(sample):
            found.setdefault(memory.text, LabelledText(memory.text, memory.importance, memory.type))
    return tuple(found.values())


def _case(number: int, sample: MemorySample) -> RankingCase:
    return RankingCase(
        str(number),
        sample.query,
        _candidate(sample.positive),
        tuple(Distractor(each.kind, _candidate(each.memory)) for each in sample.negatives),
    )


def _candidate(memory: GeneratedMemory) -> Candidate:
    return Candidate(memory.text, memory.days_ago, memory.type)


def _memories(sample: MemorySample) -> Iterator[GeneratedMemory]:
    yield sample.positive
    yield from (each.memory for each in sample.negatives)
