"""Maximal marginal relevance: an order in which the best come first and do not repeat each other.

Source: Carbonell and Goldstein, "The Use of MMR, Diversity-Based Reranking for Reordering Documents
and Producing Summaries", SIGIR 1998; the adaptive trade-off is Memory-Spark's
(`computeAdaptiveLambda`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]
IntArray = NDArray[np.int64]

WIDE_SPREAD, NARROW_SPREAD = 0.3, 0.1


def marginal_order(relevance: FloatArray, similarity: FloatArray, *, trade_off: float) -> IntArray:
    """Take the most relevant first, then whatever has the largest marginal relevance.

    λ·relevance - (1 - λ)·(largest similarity to what was taken). Nothing is lost: the result
    orders all candidates. Equal ones keep their order.

    Args:
        relevance: In [0, 1], shape (candidates,).
        similarity: Cosine between candidates, in [-1, 1], shape (candidates, candidates).
        trade_off: λ; 1 asks for relevance alone, 0 for difference alone.
    """
    order: list[int] = []
    left = np.ones(len(relevance), bool)
    # Two candidates may point away from each other, so nothing is less similar than -1.
    closest = np.full(len(relevance), -1.0)
    marginal = relevance.astype(np.float64)
    while len(order) < len(relevance):
        best = int(np.argmax(np.where(left, marginal, -np.inf)))
        order.append(best)
        left[best] = False
        closest = np.maximum(closest, similarity[best])
        marginal = trade_off * relevance - (1 - trade_off) * closest
    return np.array(order, np.int64)


def adaptive_trade_off(scores: FloatArray) -> float:
    """Trust relevance the more, the further the scores spread.

    λ is .95 above a spread of .3, .85 above .1, else .7; .9 for a single candidate.

    Args:
        scores: Raw cosine of the candidates. Values scaled to [0, 1] would always spread by 1.
    """
    if len(scores) < 2:
        return 0.9
    spread = float(np.ptp(scores))
    if spread > WIDE_SPREAD:
        return 0.95
    return 0.85 if spread > NARROW_SPREAD else 0.7
