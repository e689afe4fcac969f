"""The first stage of the method: pairwise preferences of teachers become a soft label each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ekphory.training.reranker.abilities import abilities_of_ratings, bradley_terry, elo
from ekphory.training.reranker.agreement import Agreement, agreements
from ekphory.training.reranker.examples import RerankExample
from ekphory.training.reranker.levels import SOFT_LABELS, levels, relevance, soft_labels
from ekphory.training.reranker.preference_teachers import PreferenceTeacher

FloatArray = NDArray[np.float64]
Aggregation = Literal["bradley_terry", "elo"]

_ELO_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class WeightedTeacher:
    """A teacher and how much its word counts."""

    teacher: PreferenceTeacher
    weight: float


@dataclass(frozen=True, slots=True)
class LabelledExamples:
    """Examples with soft labels.

    Attributes:
        examples: In the order given.
        levels: How many candidates are of each level, 1 to 5.
        agreements: How far every two teachers agree.
    """

    examples: tuple[RerankExample, ...]
    levels: Mapping[int, int]
    agreements: tuple[Agreement, ...]


def with_soft_labels(
    examples: Sequence[RerankExample],
    teachers: Sequence[WeightedTeacher],
    *,
    aggregation: Aggregation = "bradley_terry",
    progress: Callable[[int, int], None],
) -> LabelledExamples:
    """Ask every teacher about every example.

    What was made to be wrong stays irrelevant, whatever teachers say of it.

    Args:
        examples: Without labels.
        teachers: At least one.
        aggregation: How preferences become abilities.
        progress: Is told how many examples are labelled, and of how many.

    Raises:
        ServiceError: A remote teacher failed after all repeats.
    """
    heard: dict[str, list[FloatArray]] = {each.teacher.name: [] for each in teachers}
    labelled = []
    counts = dict.fromkeys(range(1, len(SOFT_LABELS) + 1), 0)
    for done, example in enumerate(examples, start=1):
        own = [each.teacher.preferences(example) for each in teachers]
        for each, preferences in zip(teachers, own, strict=True):
            heard[each.teacher.name].append(preferences)
        wins = sum(
            (each.weight * preferences for each, preferences in zip(teachers, own, strict=True)),
            np.zeros_like(own[0]),
        )
        found = _levels(example, wins, aggregation)
        for level in found:
            counts[int(level)] += 1
        labels = tuple(float(label) for label in soft_labels(found))
        labelled.append(replace(example, labels=labels))
        progress(done, len(examples))
    return LabelledExamples(tuple(labelled), counts, tuple(agreements(heard)))


def _levels(
    example: RerankExample, wins: FloatArray, aggregation: Aggregation
) -> NDArray[np.int64]:
    relevant = np.array([candidate.relevant for candidate in example.candidates])
    judged = np.array([candidate.judged for candidate in example.candidates])
    if aggregation == "bradley_terry":
        abilities = bradley_terry(wins)
    else:
        abilities = abilities_of_ratings(elo(_matches(wins), len(wins)))
    found = levels(relevance(abilities, relevant))
    found[judged & ~relevant] = 1
    return found


def _matches(wins: FloatArray) -> list[tuple[int, int, float]]:
    """Every pair once a round, in an order that is drawn anew and the same in every run."""
    count = len(wins)
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    random = Random(count)  # noqa: S311  no secret
    rounds = [random.sample(pairs, len(pairs)) for _ in range(_ELO_ROUNDS)]
    return [
        (i, j, float(wins[i, j] / max(wins[i, j] + wins[j, i], 1e-12)))
        for matches in rounds
        for i, j in matches
    ]
