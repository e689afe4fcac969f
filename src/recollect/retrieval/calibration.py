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
        exponents = -(self.slope * scores.astype(np.float64) + self.intercept)
        # Beyond 700 the exponential overflows, and the probability is 0 anyway.
        return np.asarray(1 / (1 + np.exp(np.minimum(exponents, 700))), np.float32)


FUSION_CALIBRATION = Calibration(slope=8.62, intercept=-10.53)
"""For the weighted sum of cosine and lexical share with the bundled embedder."""
