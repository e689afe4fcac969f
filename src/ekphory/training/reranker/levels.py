"""Five levels of relevance, and the soft label that each stands for.

    1 irrelevant · 2 low · 3 partial · 4 highly relevant · 5 direct answer

MemReranker names the levels and their bounds. How an ability becomes a place among them is not
published; ours: twice the chance to beat a known answer, so that an answer has 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

BOUNDS = (0.2, 0.4, 0.6, 0.8)
SOFT_LABELS = (0.02, 0.3, 0.5, 0.7, 0.98)
"""The middle of each level; at the two ends nearly 0 and 1, since most passages are irrelevant."""


def relevance(abilities: FloatArray, known: NDArray[np.bool_]) -> FloatArray:
    """Put abilities between 0 and 1, where the mean of the known answers is 1.

    Args:
        abilities: Natural logarithms, shape (n,).
        known: Which candidates are known to answer; where none is, the best one counts as known.
    """
    reference = abilities[known].mean() if known.any() else abilities.max()
    return np.asarray(np.minimum(1.0, 2 / (1 + np.exp(reference - abilities))))


def levels(relevances: FloatArray) -> NDArray[np.int64]:
    """Give the level of each, 1 to 5; a bound belongs to the level above it."""
    return np.digitize(relevances, BOUNDS).astype(np.int64) + 1


def soft_labels(found: NDArray[np.int64]) -> FloatArray:
    """Give the soft label of each level."""
    return np.asarray(SOFT_LABELS, np.float64)[found - 1]
