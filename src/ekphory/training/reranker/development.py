"""How well a reranker puts the answer first, by source, on questions that are held back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ekphory.evaluation.baselines import z_scored_mean
from ekphory.training.reranker.examples import RerankExample

ALL = "all"


@dataclass(frozen=True, slots=True)
class Development:
    """Mean reciprocal rank of the best answer.

    Attributes:
        step: After how many steps; -1 for the first stage alone.
        ranks: By source, and over all questions as `all`.
        with_context: Of the questions with a dialogue before them; None where there is none.
    """

    step: int
    ranks: Mapping[str, float]
    with_context: float | None


def development(
    examples: Sequence[RerankExample], scores: Sequence[NDArray[np.float64]], *, step: int
) -> Development:
    """Rank every example's candidates by their scores.

    Args:
        examples: At least one.
        scores: For each example one score per candidate.
        step: After how many steps they were given.
    """
    found: dict[str, list[float]] = {ALL: []}
    context = []
    for example, given in zip(examples, scores, strict=True):
        rank = reciprocal_rank(example, given)
        found[ALL].append(rank)
        found.setdefault(example.source, []).append(rank)
        if example.query.context:
            context.append(rank)
    ranks = {source: round(float(np.mean(each)), 4) for source, each in found.items()}
    return Development(step, ranks, round(float(np.mean(context)), 4) if context else None)


def reciprocal_rank(example: RerankExample, scores: NDArray[np.float64]) -> float:
    """One by the rank of the best answer; candidates with equal scores rank behind the wrong."""
    relevant = np.array([candidate.relevant for candidate in example.candidates])
    best = scores[relevant].max()
    return 1 / (1 + int((scores[~relevant] >= best).sum()))


def first_stage_scores(example: RerankExample) -> NDArray[np.float64]:
    """Give what ranks without a reranker: BM25 and cosine, z-scored over the candidates."""
    columns = [
        np.array([getattr(candidate, name) for candidate in example.candidates], np.float64)
        for name in ("lexical", "dense")
    ]
    return z_scored_mean(*columns)
