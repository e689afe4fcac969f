"""How far two teachers agree: Kendall's tau and Cohen's kappa over pairs of candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_TIE = 0.02
"""Preferences this near to one half are no preference."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two teachers over the same questions.

    Attributes:
        first, second: Their names.
        kendall: Mean of Kendall's tau-b over the questions on which both prefer something.
        cohen: Cohen's kappa of "the first", "the second" and "neither" over all pairs.
        questions: How many questions `kendall` is the mean of.
    """

    first: str
    second: str
    kendall: float | None
    cohen: float | None
    questions: int


def agreements(preferences: Mapping[str, Sequence[FloatArray]]) -> list[Agreement]:
    """Compare every two teachers.

    Args:
        preferences: Of each teacher a matrix for every question, the same questions for all.
    """
    verdicts = {name: [_verdicts(each) for each in given] for name, given in preferences.items()}
    found = []
    for first, second in combinations(verdicts, 2):
        pairs = list(zip(verdicts[first], verdicts[second], strict=True))
        taus = [tau for pair in pairs if (tau := kendall_tau_b(*pair)) is not None]
        everything = [np.concatenate(column) for column in zip(*pairs, strict=True)]
        cohen = cohen_kappa(everything[0], everything[1]) if everything else None
        mean = float(np.mean(taus)) if taus else None
        found.append(Agreement(first, second, mean, cohen, len(taus)))
    return found


def kendall_tau_b(first: NDArray[np.int64], second: NDArray[np.int64]) -> float | None:
    """Agreements less disagreements, over the geometric mean of the pairs that each decides.

    Source: Kendall, "The Treatment of Ties in Ranking Problems", 1945.

    Args:
        first, second: For each pair 1, -1, or 0 for a tie.

    Returns:
        None where one of them decides no pair.
    """
    decided = np.abs(first).sum() * np.abs(second).sum()
    return float((first * second).sum() / np.sqrt(decided)) if decided else None


def cohen_kappa(first: NDArray[np.int64], second: NDArray[np.int64]) -> float | None:
    """Agreement beyond chance, (p_o - p_e) / (1 - p_e).

    Source: Cohen, "A Coefficient of Agreement for Nominal Scales", 1960.

    Returns:
        None where there is nothing to compare, or chance explains everything.
    """
    if not len(first):
        return None
    observed = float((first == second).mean())
    values = np.union1d(first, second)
    chance = float(sum((first == value).mean() * (second == value).mean() for value in values))
    return (observed - chance) / (1 - chance) if chance < 1 else None


def _verdicts(preferences: FloatArray) -> NDArray[np.int64]:
    """1, -1 or 0 for each pair i < j."""
    upper = preferences[np.triu_indices(len(preferences), k=1)] - 0.5
    return np.where(np.abs(upper) < _TIE, 0, np.sign(upper)).astype(np.int64)
