"""Retrieval measures, how sure they are, and whether probabilities hold."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import InvalidInput

# Retrieval measures: pure functions over one query's qrels and ranking.
#
# Qrels map the id of a judged passage to its gain; a gain of 0 or less is not relevant. A ranking
# lists ids, best first, each once. A query without a relevant passage scores 0 in every measure.
# The definitions are those of trec_eval (https://github.com/usnistgov/trec_eval).

Qrels: TypeAlias = Mapping[str, int]
Ranking: TypeAlias = Sequence[str]

_MEASURE = re.compile(r"(MAP|MRR)|(NDCG|R|P|F1|AllGold)@([1-9]\d*)")


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure under its usual name.

    Attributes:
        name: Such as `MAP` or `NDCG@10`.
        score: Gives the value in [0, 1] for one query's qrels and ranking.
    """

    name: str
    score: Callable[[Qrels, Ranking], float]


def average_precision(qrels: Qrels, ranking: Ranking) -> float:
    """Mean of the precision at each relevant passage, over all relevant passages.

    Those that the ranking lacks count with 0: the divisor is never capped by the ranking's length.
    """
    relevant = _relevant(qrels)
    found = 0
    total = 0.0
    for rank, passage_id in enumerate(ranking, start=1):
        if passage_id in relevant:
            found += 1
            total += found / rank
    return total / len(relevant) if relevant else 0.0


def reciprocal_rank(qrels: Qrels, ranking: Ranking) -> float:
    """One over the rank of the first relevant passage; 0 where there is none."""
    relevant = _relevant(qrels)
    ranks = (rank for rank, passage_id in enumerate(ranking, start=1) if passage_id in relevant)
    return 1.0 / next(ranks, math.inf)


def ndcg(qrels: Qrels, ranking: Ranking, *, cutoff: int) -> float:
    """Normalised discounted cumulative gain of the first `cutoff` passages.

    The gain is linear in the judgement, and the discount is 1 / log2(rank + 1), as in trec_eval
    and ir_measures (Järvelin and Kekäläinen, TOIS 2002, state other forms as well).
    """
    gains = [max(0, qrels.get(passage_id, 0)) for passage_id in ranking[:cutoff]]
    ideal = sorted((gain for gain in qrels.values() if gain > 0), reverse=True)[:cutoff]
    best = _discounted(ideal)
    return _discounted(gains) / best if best else 0.0


def recall(qrels: Qrels, ranking: Ranking, *, cutoff: int) -> float:
    """Share of the relevant passages that are among the first `cutoff`."""
    relevant = _relevant(qrels)
    return len(relevant.intersection(ranking[:cutoff])) / len(relevant) if relevant else 0.0


def precision(qrels: Qrels, ranking: Ranking, *, cutoff: int) -> float:
    """Relevant passages among the first `cutoff`, over `cutoff`, however short the ranking is."""
    return len(_relevant(qrels).intersection(ranking[:cutoff])) / cutoff


def f1(qrels: Qrels, ranking: Ranking, *, cutoff: int) -> float:
    """Harmonic mean of precision@cutoff and recall@cutoff: 2·P·R / (P + R), 0 where both are 0."""
    precise = precision(qrels, ranking, cutoff=cutoff)
    complete = recall(qrels, ranking, cutoff=cutoff)
    both = precise + complete
    return 2 * precise * complete / both if both else 0.0


def all_gold(qrels: Qrels, ranking: Ranking, *, cutoff: int) -> float:
    """1 where every relevant passage is among the first `cutoff`, else 0; for multi-hop sets."""
    relevant = _relevant(qrels)
    return float(bool(relevant) and relevant.issubset(ranking[:cutoff]))


def precision_and_recall(
    found: Sequence[bool] | NDArray[np.bool_], true: Sequence[bool] | NDArray[np.bool_]
) -> tuple[float, float]:
    """Return which share of what was found is there, and which share of what is there was found."""
    both = int(np.count_nonzero(np.logical_and(found, true)))
    given, there = int(np.count_nonzero(found)), int(np.count_nonzero(true))
    return round(both / max(1, given), 4), round(both / max(1, there), 4)


def measure(name: str) -> Measure:
    """Return the measure of that name.

    Args:
        name: `MAP`, `MRR`, or one of `NDCG`, `R`, `P`, `F1`, `AllGold` with a cutoff: `R@20`.

    Raises:
        InvalidInput: There is no such measure.
    """
    match = _MEASURE.fullmatch(name)
    if match is None:
        raise InvalidInput(
            "measure",
            name,
            "there is no such measure",
            "Take MAP, MRR, NDCG@k, R@k, P@k, F1@k or AllGold@k, k from 1.",
        )
    if match[1]:
        return Measure(name, average_precision if match[1] == "MAP" else reciprocal_rank)
    return Measure(name, partial(_AT_CUTOFF[match[2]], cutoff=int(match[3])))


def measures(names: Sequence[str]) -> tuple[Measure, ...]:
    """Return the measures of these names, in this order, each once.

    Raises:
        InvalidInput: There is no measure of one of these names.
    """
    return tuple(measure(name) for name in dict.fromkeys(names))


def _relevant(qrels: Qrels) -> set[str]:
    return {passage_id for passage_id, gain in qrels.items() if gain > 0}


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


_AT_CUTOFF: dict[str, Callable[..., float]] = {
    "NDCG": ndcg,
    "R": recall,
    "P": precision,
    "F1": f1,
    "AllGold": all_gold,
}

CONVERSATION_MEASURES = measures(
    "MAP MRR NDCG@1 NDCG@3 NDCG@10 R@3 R@5 R@10 R@20 P@1 P@5 P@10 F1@5 F1@10".split()
)
"""What is reported for conversations and for BEIR sets."""

MULTIHOP_MEASURES = measures(
    "MAP MRR NDCG@10 R@2 R@5 R@10 R@20 AllGold@5 AllGold@10 P@5 F1@5".split()
)
"""What is reported for multi-hop sets."""


@dataclass(frozen=True, slots=True)
class Latency:
    """How long one kind of call took, in milliseconds, and how many there were."""

    p50: float
    p95: float
    mean: float
    count: int

    @classmethod
    def of(cls, milliseconds: Sequence[float]) -> Latency:
        """Sum up at least one time."""
        p50, p95 = np.percentile(milliseconds, [50, 95])
        mean = float(np.mean(milliseconds))
        return cls(round(float(p50), 3), round(float(p95), 3), round(mean, 3), len(milliseconds))


# How sure a mean or a difference is: bootstrap intervals and a paired randomisation test.
#
# Pure functions over arrays; every random draw comes from a seed, so that a report can be repeated.

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
    scores: FloatArray, *, resamples: int = 2_000, seed: int = 0
) -> list[Estimate]:
    """Estimate the mean of every column, with its 95 % interval by the bootstrap over rows.

    Source: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13. How often
    each query occurs in a resample is one multinomial draw, shared by all columns.

    Args:
        scores: Shape (queries, measures); at least one query.
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
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    columns = zip(scores.mean(axis=0), low, high, strict=True)
    return [Estimate(float(mean), float(lower), float(upper)) for mean, lower, upper in columns]


def resampled_estimate(
    statistic: Callable[[FloatArray, FloatArray], float],
    first: FloatArray,
    second: FloatArray,
    *,
    resamples: int,
    seed: int = 0,
) -> Estimate:
    """Return a statistic of two parallel columns, with its 95 % interval by the bootstrap.

    Draws in which it is NaN are left out of the interval.
    """
    draws = np.random.default_rng(seed).integers(0, len(first), (resamples, len(first)))
    values = [statistic(first[rows], second[rows]) for rows in draws]
    low, high = np.nanquantile(values, [0.025, 0.975])
    return Estimate(statistic(first, second), float(low), float(high))


def paired_test(first: FloatArray, second: FloatArray, *, resamples: int = 10_000) -> PairedTest:
    """Compare two runs query by query with a two-sided randomisation test on the mean difference.

    Under the null hypothesis each query's two scores may change places, so the sign of every
    difference is drawn at random; the p-value counts the observed assignment as one of the draws
    and so is never 0. Source: Smucker, Allan and Carterette, "A Comparison of Statistical
    Significance Tests for Information Retrieval Evaluation", CIKM 2007.

    Args:
        first: Scores of the first run, shape (queries,).
        second: Scores of the second run for the same queries in the same order.
        resamples: How many sign assignments to draw.
    """
    differences = second - first
    interval = bootstrap_intervals(differences[:, np.newaxis])[0]
    return PairedTest(
        difference=interval.mean,
        low=interval.low,
        high=interval.high,
        p_value=_sign_flip_p_value(differences, resamples),
        better=int(np.count_nonzero(differences > 0)),
        worse=int(np.count_nonzero(differences < 0)),
    )


def _sign_flip_p_value(differences: FloatArray, resamples: int) -> float:
    changed = differences[differences != 0]
    if not len(changed):
        return 1.0
    generator = np.random.default_rng(0)
    # A sum that equals the observed one but for rounding is as extreme as it.
    threshold = abs(changed.sum()) - 1e-9
    extreme = 0
    at_once = max(1, _DRAWS_AT_ONCE // len(changed))
    for start in range(0, resamples, at_once):
        size = min(at_once, resamples - start)
        signs = generator.integers(0, 2, (size, len(changed)), dtype=np.int8) * 2.0 - 1.0
        extreme += int(np.count_nonzero(np.abs(signs @ changed) >= threshold))
    return (extreme + 1) / (resamples + 1)


# Whether probabilities hold: what a system said, beside how often it was right.

PROBABILITIES = "probabilities"
"""What a system's configuration says of its `scores` when they are probabilities of relevance."""
BEST = 50
"""How many hits of each query are looked at."""
BINS = 10
_FEWEST, _DRAWS = 40, 1_000
"""Questions in a bin of best hits at least, and how often their labels are drawn anew."""


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
    said, right = np.array(firsts, np.float64).T
    return CalibrationScores(
        hits=expected_calibration_error(*np.array(hits, np.float64).T),
        first_hit=best_hit_error(said, right),
        first_said=float(said.mean()),
        first_right=float(right.mean()),
    )


def best_hit_error(probabilities: FloatArray, right: FloatArray) -> float:
    """Return how far the best hits' probabilities are from how often they are right.

    Mean |predicted - observed| over bins of equal mass with at least forty questions each, less
    what the same figure is on average where the labels are drawn from the probabilities: what is
    left is not chance. At least 0.

    Args:
        probabilities: Of the best hit of each question, shape (questions,).
        right: Whether it answers, 0 or 1, parallel.
    """
    if not len(probabilities):
        return 0.0
    order = np.argsort(probabilities, kind="stable")
    bins = np.array_split(order, max(1, min(BINS, len(order) // _FEWEST)))
    drawn = np.random.default_rng(0).random((_DRAWS, len(probabilities))) < probabilities
    labels = np.concatenate([right[None, :], drawn.astype(np.float64)])
    gaps = sum(
        np.abs(probabilities[each].mean() - labels[:, each].mean(axis=1)) * len(each)
        for each in bins
    ) / len(order)
    return max(0.0, float(gaps[0] - gaps[1:].mean()))


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
