"""Whether the highest probability tells a question with an answer from one without."""

from __future__ import annotations

import numpy as np

from ekphory.evaluation.reranking.candidates import FloatArray
from ekphory.evaluation.stats import Estimate

_RESAMPLES = 1_000


def answerability(own: FloatArray, elsewhere: FloatArray, *, seed: int = 0) -> Estimate:
    """AUROC of the highest probability, each question asked in its own and another conversation.

    It is the share of pairs, one question in its own conversation and any question in another one,
    in which the former has the higher value; equal values count as half.

    Args:
        own: Highest probability in the question's own conversation, shape (questions,).
        elsewhere: In another conversation, parallel.
        seed: Seed of the bootstrap over questions.

    Returns:
        The value and its 95 % interval.
    """
    generator = np.random.default_rng(seed)
    draws = generator.integers(0, len(own), (_RESAMPLES, len(own)))
    values = [auroc(own[draw], elsewhere[draw]) for draw in draws]
    low, high = np.quantile(values, [0.025, 0.975])
    return Estimate(auroc(own, elsewhere), float(low), float(high))


def auroc(positive: FloatArray, negative: FloatArray) -> float:
    """Area under the curve of true against false positives (Hanley and McNeil, 1982)."""
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, side="left")
    not_above = np.searchsorted(ordered, positive, side="right")
    return float((below + not_above).mean() / (2 * len(negative)))
