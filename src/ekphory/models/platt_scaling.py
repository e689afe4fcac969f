"""From a reranker's logits to probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ekphory.models.reranker import RelevanceScores

_LEAST_PROBABILITY = 1e-7


@dataclass(frozen=True, slots=True)
class PlattScaling:
    """P = 1 / (1 + exp(-(slope · logit + intercept))) (Platt, 1999).

    With intercept 0 it is temperature scaling; with slope 1 too, the logit's own probability.
    """

    slope: float = 1.0
    intercept: float = 0.0

    def probabilities(self, logits: NDArray[np.floating]) -> RelevanceScores:
        """Probabilities in [0, 1], parallel to `logits`; NaN stays NaN."""
        scaled = self.slope * logits.astype(np.float64) + self.intercept
        # The logistic function, written so that no large logit overflows.
        return np.asarray((1 + np.tanh(scaled / 2)) / 2, np.float32)


UNCALIBRATED = PlattScaling()


def log_odds(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Undo the sigmoid that crushes a reranker's scores together: ln(s / (1 - s)), finite."""
    bounded = np.clip(scores.astype(np.float64), _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
    return np.asarray(np.log(bounded / (1 - bounded)))
