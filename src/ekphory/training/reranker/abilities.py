"""From pairwise preferences to one ability per candidate: Bradley–Terry, and Elo."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_MOST_ROUNDS = 500
_TOLERANCE = 1e-9


def bradley_terry(wins: FloatArray, *, prior: float = 0.1) -> FloatArray:
    """Maximum likelihood of P(i beats j) = 1 / (1 + exp(a_j - a_i)).

    Source: Bradley and Terry, "Rank Analysis of Incomplete Block Designs", 1952; the iteration is
    that of Hunter, "MM algorithms for generalized Bradley-Terry models", 2004, equation 30.

    Args:
        wins: How often (or with how much weight) i was preferred to j, shape (n, n); the diagonal
            is not read.
        prior: Weight of one win and one defeat added to every pair, which keeps a candidate that
            never loses finite.

    Returns:
        Abilities in natural logarithms, mean 0, shape (n,).
    """
    count = len(wins)
    if count < 2:
        return np.zeros(count)
    counted = wins + prior
    np.fill_diagonal(counted, 0.0)
    won, games = counted.sum(axis=1), counted + counted.T
    strengths = np.ones(count)
    for _ in range(_MOST_ROUNDS):
        shared = games / (strengths[:, None] + strengths[None, :])
        renewed = won / shared.sum(axis=1)
        renewed /= np.exp(np.log(renewed).mean())
        change = np.abs(np.log(renewed) - np.log(strengths)).max()
        strengths = renewed
        if change < _TOLERANCE:
            break
    return np.log(strengths)


def elo(matches: Iterable[tuple[int, int, float]], count: int, *, step: float = 32.0) -> FloatArray:
    """Ratings after matches in the order given; all begin at 1500.

    Source: Elo, "The Rating of Chessplayers, Past and Present", 1978. Expected is
    1 / (1 + 10^((R_j - R_i) / 400)), and `step` times the surprise goes from one to the other.

    Args:
        matches: First candidate, second candidate, score of the first from 0 to 1.
        count: How many candidates.
        step: Elo's K.
    """
    ratings = np.full(count, 1500.0)
    for first, second, score in matches:
        expected = 1 / (1 + 10 ** ((ratings[second] - ratings[first]) / 400))
        change = step * (score - expected)
        ratings[first] += change
        ratings[second] -= change
    return ratings


def abilities_of_ratings(ratings: FloatArray) -> FloatArray:
    """Bring Elo ratings to the scale of `bradley_terry`: natural logarithms, mean 0."""
    scaled: FloatArray = ratings * (np.log(10) / 400)
    return np.asarray(scaled - scaled.mean())
