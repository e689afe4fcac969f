"""Putting scores together, of the two arms and of a reranker: pure functions over arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ekphory.models.reranker import log_odds

FloatArray = NDArray[np.float32]
Float64Array = NDArray[np.float64]

# The two arms.


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalWeight:
    """How much a full lexical match counts against a cosine of 1.

    Attributes:
        documents: In a scope of documents and notes.
        turns: In a scope of conversations, whose turns share words with every other turn.
    """

    documents: float
    turns: float

    def among(self, turn_share: float) -> float:
        """Return the weight in a scope of which this share, in [0, 1], are turns."""
        return self.documents + turn_share * (self.turns - self.documents)

    def times(self, factor: float) -> LexicalWeight:
        """Return both weights times a factor."""
        return LexicalWeight(documents=self.documents * factor, turns=self.turns * factor)


LEXICAL_WEIGHT = LexicalWeight(documents=0.75, turns=0.4)
"""docs/LOG.md, experiments 17 and 33."""
EVEN_LEXICAL_WEIGHT = LexicalWeight(documents=0.75, turns=0.75)
"""Where words are all there is, or a reranker reads what is meant (docs/LOG.md, experiment 33)."""
RRF_CONSTANT = 60


def weighted_sum(
    cosine: FloatArray, lexical_share: FloatArray, *, lexical_weight: float
) -> FloatArray:
    """Add cosine and weighted lexical share.

    Both are absolute: cosine in [-1, 1], and the lexical share is BM25 divided by the most it
    could be for this query. So the sum can be compared between queries, and does not change with
    the candidates it is computed among, as min-max and z-scores do.
    """
    return np.asarray(cosine + np.float32(lexical_weight) * lexical_share, np.float32)


def reciprocal_rank(*arms: FloatArray, weights: Sequence[float] | None = None) -> FloatArray:
    """Reciprocal rank fusion: the sum over arms of weight / (60 + rank), ranks from 1.

    A row whose score in an arm is NaN was not found by that arm, and gets nothing from it.
    Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and
    individual Rank Learning Methods", SIGIR 2009.

    Args:
        arms: Scores of the same rows in each arm, each of shape (rows,).
        weights: One for each arm; None weighs all alike.
    """
    fused = np.zeros(len(arms[0]), np.float32)
    for scores, weight in zip(arms, weights or [1.0] * len(arms), strict=True):
        order = _found(scores)
        fused[order] += (weight / (RRF_CONSTANT + np.arange(1, len(order) + 1))).astype(np.float32)
    return fused


def adaptive_weights(
    dense: FloatArray, lexical: FloatArray, *, top: int = 10
) -> tuple[float, float]:
    """Weigh the dense arm the more, the fewer of its best rows the lexical arm found as well.

    Source: Memory-Spark's adaptive `hybridMerge`: equal weights above an overlap of .6, 1.5 and .5
    above .3, else 2.0 and .3.

    Args:
        dense, lexical: Scores of the same rows, NaN where an arm did not find a row.
        top: Over how many of the dense arm's rows the overlap is taken.
    """
    best = _found(dense)[:top]
    overlap = float(np.mean(~np.isnan(lexical[best]))) if len(best) else 0.0
    if overlap > 0.6:
        return 1.0, 1.0
    return (1.5, 0.5) if overlap > 0.3 else (2.0, 0.3)


def first_found(scores: FloatArray, most: int | None) -> FloatArray:
    """Return the scores with all but the `most` best as NaN, as if an arm had ended there."""
    if most is None or len(scores) <= most:
        return scores
    cut = np.full(len(scores), np.nan, np.float32)
    kept = _found(scores)[:most]
    cut[kept] = scores[kept]
    return cut


def _found(scores: FloatArray) -> NDArray[np.intp]:
    """Return the rows that an arm found, best first, equal ones in their order."""
    found = np.flatnonzero(~np.isnan(scores))
    return found[np.argsort(-scores[found], kind="stable")]


# A reranker's scores and the first stage's order.
#
# Source of the formulas: `blendByRank` and `blendScores` in kleinpanic/memory-spark,
# `src/rerank/reranker.ts`.

BlendMethod = Literal["ranks", "scores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """How a reranker's scores and the first stage's order become one.

    Attributes:
        method: `ranks` sums reciprocal ranks; `scores` adds the scores, both scaled to [0, 1].
        first_stage_share: Share of the first stage among `scores`; 0 leaves the reranker alone.
        constant: Added to each rank among `ranks`.
        first_stage_weight, reranker_weight: Of the two among `ranks`.
        least_spread: Reranker's scores that lie closer together, in logits, change no order.
        most_spread: Among `scores`: what lies further below the reranker's best, in logits, counts
            as so far below. How improbable the improbable are shall not decide about the best.
    """

    method: BlendMethod = "ranks"
    first_stage_share: float = 0.0
    constant: float = 60.0
    first_stage_weight: float = 1.0
    reranker_weight: float = 1.0
    least_spread: float = 0.5
    most_spread: float = math.inf


def turns_blend(first_stage_share: float) -> Blend:
    """Return the blend of scores found best on turns of conversations (docs/LOG.md, 31)."""
    return Blend(method="scores", first_stage_share=first_stage_share, most_spread=5.0)


def reranked(
    first_stage: Float64Array,
    reranker: Float64Array,
    blend: Blend,
    *,
    gate_weight: float = 1.0,
    boost: Float64Array | None = None,
) -> Float64Array:
    """Score all candidates anew; those that were not read follow the others in their order.

    Args:
        first_stage: Values they were ordered by, best first, shape (candidates,).
        reranker: Scores in [0, 1], NaN for a candidate that was not read.
        blend: How the two become one.
        gate_weight: Multiplies the first stage's weight among `ranks`.
        boost: Multiplies the new score of each candidate; None for no change.
    """
    read = ~np.isnan(reranker)
    factors = np.ones(len(first_stage)) if boost is None else boost
    scores = np.empty(len(first_stage))
    if blend.method == "scores":
        blended = blended_scores(
            first_stage[read],
            reranker[read],
            first_stage_share=blend.first_stage_share,
            most_spread=blend.most_spread,
        )
    else:
        blended = blended_ranks(
            reranker[read],
            constant=blend.constant,
            first_stage_weight=blend.first_stage_weight * gate_weight,
            reranker_weight=blend.reranker_weight,
        )
    scores[read] = blended * factors[read]
    rest = first_stage[~read] * factors[~read]
    lowest, highest = scores[read].min(initial=0.0), rest.max(initial=0.0)
    scores[~read] = rest - highest + lowest - 1e-5
    return scores


def blended_ranks(
    reranker: Float64Array,
    *,
    constant: float = 60.0,
    first_stage_weight: float = 1.0,
    reranker_weight: float = 1.0,
) -> Float64Array:
    """Add weighted reciprocal ranks: w₁/(constant + r₁) + w₂/(constant + r₂), ranks from 1.

    Candidates come in the first stage's order, so the place is its rank. Equal reranker scores
    keep that order.
    """
    places = np.arange(1, len(reranker) + 1, dtype=np.float64)
    ranks = np.empty(len(reranker))
    ranks[np.argsort(-reranker, kind="stable")] = places
    return first_stage_weight / (constant + places) + reranker_weight / (constant + ranks)


def blended_scores(
    first_stage: Float64Array,
    reranker: Float64Array,
    *,
    first_stage_share: float,
    most_spread: float = math.inf,
) -> Float64Array:
    """Add share·minmax(first stage) + (1 - share)·minmax(max(l, max(l) - most_spread)).

    l are the logits of the reranker's scores.
    """
    share, read = first_stage_share, log_odds(reranker)
    bounded = np.maximum(read, read.max(initial=-math.inf) - most_spread)
    return share * min_max(first_stage) + (1 - share) * min_max(bounded)


def lift_odds(scores: Float64Array, factors: Float64Array) -> Float64Array:
    """Return probabilities whose odds are multiplied; NaN stays."""
    lifted = log_odds(scores) + np.log(factors)
    return np.where(factors == 1, scores, 1 / (1 + np.exp(-lifted)))


def min_max(values: Float64Array) -> Float64Array:
    """Scale to [0, 1]; equal values all become .5."""
    spread = np.ptp(values) if len(values) else 0.0
    if spread == 0:
        return np.full(len(values), 0.5)
    return np.asarray((values - values.min()) / spread)


def is_undecided(reranker: Float64Array, *, least_spread: float) -> bool:
    """Whether the scores, NaN aside, lie so close together in logits that their order is chance."""
    read = reranker[~np.isnan(reranker)]
    return len(read) > 1 and float(np.ptp(log_odds(read))) < least_spread
