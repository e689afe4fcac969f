"""Retrieval measures: pure functions over one query's qrels and ranking.

Qrels map the id of a judged passage to its gain; a gain of 0 or less is not relevant. A ranking
lists ids, best first, each once. A query without a relevant passage scores 0 in every measure.
The definitions are those of trec_eval (https://github.com/usnistgov/trec_eval).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from ekphory.errors import InvalidInput

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
    for rank, passage_id in enumerate(ranking, start=1):
        if passage_id in relevant:
            return 1.0 / rank
    return 0.0


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


def measure(name: str) -> Measure:
    """Give the measure of that name.

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
    """Give the measures of these names, in this order, each once.

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
    [
        "MAP",
        "MRR",
        "NDCG@1",
        "NDCG@3",
        "NDCG@10",
        "R@3",
        "R@5",
        "R@10",
        "R@20",
        "P@1",
        "P@5",
        "P@10",
        "F1@5",
        "F1@10",
    ]
)
"""What is reported for conversations and for BEIR sets."""

MULTIHOP_MEASURES = measures(
    [
        "MAP",
        "MRR",
        "NDCG@10",
        "R@2",
        "R@5",
        "R@10",
        "R@20",
        "AllGold@5",
        "AllGold@10",
        "P@5",
        "F1@5",
    ]
)
"""What is reported for multi-hop sets."""
