"""Platt's calibration: from a model's logit to the probability that a passage answers.

Source: Platt, "Probabilistic Outputs for Support Vector Machines", 1999, with his targets, which
keep a perfect separation finite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import InvalidInput
from ekphory.evaluation.calibration import expected_calibration_error
from ekphory.models.platt_scaling import PlattScaling

FloatArray = NDArray[np.float64]

PRECISIONS = (0.5, 0.7, 0.8, 0.9, 0.95)
_NEWTON_STEPS = 100
_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True)
class PlattFit:
    """A curve and how well it holds.

    Attributes:
        scaling: Fitted on all observations.
        observations: How many.
        expected_calibration_error: Of curves fitted on one half of the questions, on the other;
            ten bins of equal width.
    """

    scaling: PlattScaling
    observations: int
    expected_calibration_error: float


def fit_platt(logits: list[FloatArray], relevant: list[FloatArray]) -> PlattFit:
    """Fit on the candidates of some questions.

    Args:
        logits: For each question its candidates' logits.
        relevant: 1 for what answers, 0 else, parallel.

    Raises:
        InvalidInput: Fewer than four questions.
    """
    if len(logits) < 4:
        raise InvalidInput(
            "calibration", len(logits), "too few questions to fit a curve", "Give four or more."
        )
    halves = [slice(0, None, 2), slice(1, None, 2)]
    said, right = [], []
    for known, other in (halves, halves[::-1]):
        curve = platt_curve(np.concatenate(logits[known]), np.concatenate(relevant[known]))
        said.append(curve.probabilities(np.concatenate(logits[other])))
        right.append(np.concatenate(relevant[other]))
    error = expected_calibration_error(np.concatenate(said), np.concatenate(right))
    joined = np.concatenate(logits)
    return PlattFit(platt_curve(joined, np.concatenate(relevant)), len(joined), error)


def precision_thresholds(probabilities: FloatArray, relevant: FloatArray) -> dict[str, float]:
    """Give, for each precision, the least probability from which on it is reached.

    Args:
        probabilities: What the model said, shape (observations,).
        relevant: 1 for what answers, 0 else, parallel.

    Returns:
        By precision, such as `0.9`; one that is never reached is left out.
    """
    order = np.argsort(-probabilities, kind="stable")
    said = probabilities[order]
    precision = np.cumsum(relevant[order]) / np.arange(1, len(order) + 1)
    # Equal probabilities are taken together or not at all.
    last = np.append(said[1:] < said[:-1], True)
    found = {}
    for wanted in PRECISIONS:
        reached = np.flatnonzero(last & (precision >= wanted))
        if len(reached):
            found[str(wanted)] = round(float(said[reached[-1]]), 4)
    return found


def platt_curve(logits: FloatArray, relevant: FloatArray) -> PlattScaling:
    """Maximum likelihood by Newton's method; shapes (observations,)."""
    answers = relevant.sum()
    others = len(relevant) - answers
    targets = np.where(relevant > 0, (answers + 1) / (answers + 2), 1 / (others + 2))
    design = np.stack([logits, np.ones_like(logits)], axis=1)
    # As if the model said nothing: Newton's method then begins where it converges.
    weights = np.array([0.0, np.log((answers + 1) / (others + 1))])
    for _ in range(_NEWTON_STEPS):
        found = 1 / (1 + np.exp(-np.clip(design @ weights, -700, 700)))
        curvature = np.maximum(found * (1 - found), 1e-12)
        gradient = design.T @ (targets - found)
        step = np.linalg.solve(design.T @ (design * curvature[:, None]), gradient)
        weights += step
        if float(np.abs(step).max()) < _TOLERANCE:
            break
    return PlattScaling(float(weights[0]), float(weights[1]))
