"""Putting the scores of the two arms together: pure functions over arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]


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
