"""From a reranker's logits to probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recollect.models.reranker import RelevanceScores


@dataclass(frozen=True, slots=True)
class PlattScaling:
    """P = 1 / (1 + exp(-(slope · logit + intercept))) (Platt, 1999).

    With intercept 0 it is temperature scaling; with slope 1 too, the logit's own probability.
    """

    slope: float = 1.0
    intercept: float = 0.0

    def probabilities(self, logits: RelevanceScores) -> RelevanceScores:
        """Probabilities in [0, 1], parallel to `logits`; NaN stays NaN."""
        scaled = self.slope * logits.astype(np.float64) + self.intercept
        # The logistic function, written so that no large logit overflows.
        return np.asarray((1 + np.tanh(scaled / 2)) / 2, np.float32)


UNCALIBRATED = PlattScaling()
