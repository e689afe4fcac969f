"""Putting the scores of the two arms together: pure functions over arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]

LEXICAL_WEIGHT = (1.5, 1.0)
"""How much a full lexical match counts against a cosine of 1, among turns and among documents
(measured: docs/LOG.md, experiment 8)."""
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


def reciprocal_rank(*arms: FloatArray, constant: float = RRF_CONSTANT) -> FloatArray:
    """Reciprocal rank fusion: the sum over arms of 1 / (constant + rank), ranks from 1.

    A row whose score in an arm is NaN was not found by that arm, and gets nothing from it.
    Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and
    individual Rank Learning Methods", SIGIR 2009.
    """
    fused = np.zeros(len(arms[0]), np.float32)
    for scores in arms:
        found = np.flatnonzero(~np.isnan(scores))
        order = found[np.argsort(-scores[found], kind="stable")]
        fused[order] += (1.0 / (constant + np.arange(1, len(order) + 1))).astype(np.float32)
    return fused
