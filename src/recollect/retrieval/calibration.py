"""Scores that mean something: from a raw score to the probability that a memory is relevant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic curve, P = 1 / (1 + exp(-(slope·score + intercept))) (Platt, 1999).

    Attributes:
        slope, intercept: Fitted on training data by `recollect train calibration`.
    """

    slope: float
    intercept: float

    def probabilities(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Probabilities in (0, 1), parallel to `scores`."""
        return np.asarray(1 / (1 + np.exp(-(self.slope * scores + self.intercept))), np.float32)


FUSION_CALIBRATION = Calibration(slope=6.0, intercept=-7.0)
"""For the weighted sum of cosine and lexical share with the bundled embedder."""
