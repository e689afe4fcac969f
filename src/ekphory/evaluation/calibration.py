"""Whether probabilities hold: what a system said, beside how often it was right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PROBABILITIES = "probabilities"
"""What a system's configuration says of its `scores` when they are probabilities of relevance."""
BEST = 50
"""How many hits of each query are looked at."""
BINS = 10

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CalibrationScores:
    """How far probabilities are from what is observed.

    Attributes:
        hits: Expected calibration error over the best `BEST` hits of each query.
        first_hit: Error of the best hit; see `best_hit_error`.
        first_said: Mean probability of the best hit.
        first_right: How often the best hit is relevant.
    """

    hits: float
    first_hit: float
    first_said: float
    first_right: float


def calibration_scores(queries: Sequence[Sequence[tuple[float, bool]]]) -> CalibrationScores | None:
    """Compare probabilities with labels.

    Args:
        queries: For each query its hits, best first: the probability, and whether it is relevant.

    Returns:
        None where there is no hit at all.
    """
    hits = [hit for ranking in queries for hit in ranking[:BEST]]
    firsts = [ranking[0] for ranking in queries if ranking]
    if not firsts:
        return None
    said, right = _columns(firsts)
    return CalibrationScores(
        hits=expected_calibration_error(*_columns(hits)),
        first_hit=best_hit_error(said, right),
        first_said=float(said.mean()),
        first_right=float(right.mean()),
    )


def best_hit_error(
    probabilities: FloatArray, right: FloatArray, *, fewest: int = 40, draws: int = 1_000
) -> float:
    """Return how far the best hits' probabilities are from how often they are right.

    Mean |predicted - observed| over bins of equal mass with at least `fewest` questions each, less
    what the same figure is on average where the labels are drawn from the probabilities: what is
    left is not chance. At least 0.

    Args:
        probabilities: Of the best hit of each question, shape (questions,).
        right: Whether it answers, 0 or 1, parallel.
        fewest: Questions in a bin.
        draws: How often labels are drawn anew.
    """
    if not len(probabilities):
        return 0.0
    order = np.argsort(probabilities, kind="stable")
    bins = np.array_split(order, max(1, min(BINS, len(order) // fewest)))
    drawn = np.random.default_rng(0).random((draws, len(probabilities))) < probabilities
    labels = np.concatenate([right[None, :], drawn.astype(np.float64)])
    gaps = sum(
        np.abs(probabilities[each].mean() - labels[:, each].mean(axis=1)) * len(each)
        for each in bins
    ) / len(order)
    return max(0.0, float(gaps[0] - gaps[1:].mean()))


def _columns(hits: Sequence[tuple[float, bool]]) -> tuple[FloatArray, FloatArray]:
    table = np.array(hits, np.float64)
    return table[:, 0], table[:, 1]


def expected_calibration_error(
    probabilities: FloatArray, relevant: FloatArray, *, bins: int = BINS
) -> float:
    """Mean |predicted - observed| over bins of equal width, weighted by their size.

    Args:
        probabilities: In [0, 1], shape (observations,).
        relevant: 0 or 1, parallel.
        bins: How many.

    Source: Guo et al., "On Calibration of Modern Neural Networks", ICML 2017.
    """
    places = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    error = 0.0
    for place in range(bins):
        inside = places == place
        if inside.any():
            gap = abs(float(probabilities[inside].mean()) - float(relevant[inside].mean()))
            error += gap * float(inside.mean())
    return error
