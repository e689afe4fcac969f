"""How sure a mean or a difference is: bootstrap intervals and a paired randomisation test.

Pure functions over arrays; every random draw comes from a seed, so that a report can be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_DRAWS_AT_ONCE = 4_000_000
"""Most random numbers held at a time: 32 MB."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over queries with its confidence interval.

    Attributes:
        mean: The mean.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PairedTest:
    """How two runs over the same queries differ.

    Attributes:
        difference: Mean of second minus first.
        low: Lower end of the difference's confidence interval.
        high: Upper end of the difference's confidence interval.
        p_value: Two-sided probability of a difference this large if the runs were exchangeable.
        better: Number of queries where the second is higher.
        worse: Number of queries where the second is lower.
    """

    difference: float
    low: float
    high: float
    p_value: float
    better: int
    worse: int


def bootstrap_intervals(
    scores: FloatArray, *, confidence: float = 0.95, resamples: int = 2_000, seed: int = 0
) -> list[Estimate]:
    """Estimate the mean of every column by the percentile bootstrap over rows.

    Source: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13. How often
    each query occurs in a resample is one multinomial draw, shared by all columns.

    Args:
        scores: Shape (queries, measures); at least one query.
        confidence: Probability mass of the interval, in (0, 1).
        resamples: How many times to resample.
        seed: Seed of the draws.

    Returns:
        One estimate per column.
    """
    queries = len(scores)
    generator = np.random.default_rng(seed)
    means = np.empty((resamples, scores.shape[1]))
    at_once = max(1, _DRAWS_AT_ONCE // queries)
    for start in range(0, resamples, at_once):
        size = min(at_once, resamples - start)
        counts = generator.multinomial(queries, np.full(queries, 1 / queries), size=size)
        means[start : start + size] = counts @ scores / queries
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    columns = zip(scores.mean(axis=0), low, high, strict=True)
    return [Estimate(float(mean), float(lower), float(upper)) for mean, lower, upper in columns]


def paired_test(
    first: FloatArray, second: FloatArray, *, resamples: int = 10_000, seed: int = 0
) -> PairedTest:
    """Compare two runs query by query with a two-sided randomisation test on the mean difference.

    Under the null hypothesis each query's two scores may change places, so the sign of every
    difference is drawn at random; the p-value counts the observed assignment as one of the draws
    and so is never 0. Source: Smucker, Allan and Carterette, "A Comparison of Statistical
    Significance Tests for Information Retrieval Evaluation", CIKM 2007.

    Args:
        first: Scores of the first run, shape (queries,).
        second: Scores of the second run for the same queries in the same order.
        resamples: How many sign assignments to draw.
        seed: Seed of the draws.
    """
    differences = second - first
    interval = bootstrap_intervals(differences[:, np.newaxis], seed=seed)[0]
    return PairedTest(
        difference=interval.mean,
        low=interval.low,
        high=interval.high,
        p_value=_sign_flip_p_value(differences, resamples=resamples, seed=seed),
        better=int(np.count_nonzero(differences > 0)),
        worse=int(np.count_nonzero(differences < 0)),
    )


def _sign_flip_p_value(differences: FloatArray, *, resamples: int, seed: int) -> float:
    changed = differences[differences != 0]
    if not len(changed):
        return 1.0
    generator = np.random.default_rng(seed)
    # A sum that equals the observed one but for rounding is as extreme as it.
    threshold = abs(changed.sum()) - 1e-9
    extreme = 0
    at_once = max(1, _DRAWS_AT_ONCE // len(changed))
    for start in range(0, resamples, at_once):
        size = min(at_once, resamples - start)
        signs = generator.integers(0, 2, (size, len(changed)), dtype=np.int8) * 2.0 - 1.0
        extreme += int(np.count_nonzero(np.abs(signs @ changed) >= threshold))
    return (extreme + 1) / (resamples + 1)
