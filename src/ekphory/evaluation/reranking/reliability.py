"""Whether a contender's probabilities hold, candidate by candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ekphory.evaluation.calibration import expected_calibration_error
from ekphory.evaluation.reranking.candidates import FloatArray

BINS = 15
"""As many as in Guo et al., "On Calibration of Modern Neural Networks", ICML 2017."""
PRECISIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
LEAST_ABOVE = 20
"""A threshold that fewer candidates reach says nothing of the precision above it."""


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Candidates of like probability.

    Attributes:
        said: Their mean probability.
        right: How many of them answer, as a share.
        candidates: How many there are.
    """

    said: float
    right: float
    candidates: int


@dataclass(frozen=True, slots=True)
class CalibrationError:
    """Expected calibration error over 15 bins.

    Attributes:
        equal_width: Bins of equal width, each weighted by its size.
        equal_mass: Bins of equally many candidates: finer where most probabilities are.
    """

    equal_width: float
    equal_mass: float


@dataclass(frozen=True, slots=True)
class PrecisionThreshold:
    """Where to cut for a precision.

    Attributes:
        precision: What is wanted of the candidates above.
        threshold: The least probability at which it is reached; None where it never is.
        recall: Share of the relevant candidates above; 0 without a threshold.
    """

    precision: float
    threshold: float | None
    recall: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """How far probabilities are from what is observed.

    Attributes:
        candidates, relevant: How many were looked at, and how many of them answer.
        all_candidates: The error over all of them.
        best: The error over the candidate of each question that has the highest probability.
        bins: Those of equal width that hold a candidate, for the picture.
        thresholds: By the precision that is wanted.
    """

    candidates: int
    relevant: int
    all_candidates: CalibrationError
    best: CalibrationError
    bins: tuple[ReliabilityBin, ...]
    thresholds: tuple[PrecisionThreshold, ...]


def reliability(questions: Sequence[tuple[FloatArray, FloatArray]]) -> Reliability | None:
    """Compare probabilities with labels.

    Args:
        questions: For each question the probabilities of its candidates and, parallel, 1 for those
            that answer and 0 for the others.

    Returns:
        None where there is no candidate at all.
    """
    filled = [question for question in questions if len(question[0])]
    if not filled:
        return None
    said = np.concatenate([probabilities for probabilities, _ in filled])
    right = np.concatenate([answers for _, answers in filled])
    best = [(said.max(), answers[said.argmax()]) for said, answers in filled]
    best_said, best_right = np.array(best, np.float64).T
    return Reliability(
        candidates=len(said),
        relevant=int(right.sum()),
        all_candidates=calibration_error(said, right),
        best=calibration_error(best_said, best_right),
        bins=reliability_bins(said, right),
        thresholds=tuple(precision_threshold(said, right, each) for each in PRECISIONS),
    )


def calibration_error(said: FloatArray, right: FloatArray) -> CalibrationError:
    """Mean |said - right| over bins, weighted by their size; shapes (observations,)."""
    order = np.argsort(said, kind="stable")
    groups = [group for group in np.array_split(order, BINS) if len(group)]
    gaps = [abs(said[group].mean() - right[group].mean()) * len(group) for group in groups]
    return CalibrationError(
        expected_calibration_error(said, right, bins=BINS), float(sum(gaps) / len(said))
    )


def reliability_bins(said: FloatArray, right: FloatArray) -> tuple[ReliabilityBin, ...]:
    """Group observations into bins of equal width; empty ones are left out."""
    places = np.minimum((said * BINS).astype(np.int64), BINS - 1)
    groups = (places == place for place in range(BINS))
    return tuple(
        ReliabilityBin(float(said[group].mean()), float(right[group].mean()), int(group.sum()))
        for group in groups
        if group.any()
    )


def precision_threshold(
    said: FloatArray, right: FloatArray, precision: float
) -> PrecisionThreshold:
    """Find the least probability from which on so many of the candidates answer.

    At least `LEAST_ABOVE` candidates must lie above it.
    """
    order = np.argsort(-said, kind="stable")
    ordered, found = said[order], np.cumsum(right[order])
    above = np.arange(1, len(said) + 1)
    # Of equal probabilities only the last is a place to cut.
    is_cut = np.append(ordered[1:] != ordered[:-1], True)
    enough = is_cut & (above >= LEAST_ABOVE) & (found / above >= precision)
    if not enough.any():
        return PrecisionThreshold(precision, None, 0.0)
    last = int(np.flatnonzero(enough)[-1])
    recall = float(found[last] / max(1.0, found[-1]))
    return PrecisionThreshold(precision, float(ordered[last]), recall)
