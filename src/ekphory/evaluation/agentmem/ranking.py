"""Measures of one answer among its candidates, and what a scorer reaches on a set of cases."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ekphory.evaluation.agentmem.cases import CaseSet, RankingCase
from ekphory.evaluation.agentmem.scorers import CandidateScorer, FloatArray
from ekphory.evaluation.retriever import Setting
from ekphory.evaluation.stats import Estimate, PairedTest, bootstrap_intervals, paired_test

MEASURES = ("MRR", "R@1", "R@5", "NDCG@10")
MAIN = "MRR"
_EQUAL = 1e-6
"""Scores that differ by less are equal: rounding, not judgement."""


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What one case gave.

    Attributes:
        case: The case.
        scores: Value by measure.
        outranked: By kind of distractor, the share of its kind that the answer does not beat; one
            with the same score counts a half.
    """

    case: RankingCase
    scores: Mapping[str, float]
    outranked: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingReport:
    """One scorer on one set.

    Attributes:
        scorer: Its name.
        configuration: Everything that decides its scores.
        set_name: The set's name.
        estimates: Mean and 95 % interval by measure.
        outranked: Mean share of the distractors that the answer does not beat, by kind.
        outcomes: What each case gave.
        against_first: Its MRR minus that of the first scorer on this set; None for that itself.
    """

    scorer: str
    configuration: Mapping[str, Setting]
    set_name: str
    estimates: Mapping[str, Estimate]
    outranked: Mapping[str, float]
    outcomes: tuple[CaseOutcome, ...]
    against_first: PairedTest | None


def rank_measures(scores: FloatArray) -> dict[str, float]:
    """Give the measures of one case whose first candidate is the answer.

    Equal scores share their ranks: each measure is its mean over all orders of the equal ones, so
    that a scorer that cannot tell two candidates apart gains nothing from their order. With one
    relevant candidate MRR is the mean of 1/rank, NDCG@10 of 1/log2(rank + 1).
    """
    others = scores[1:]
    first = 1 + int(np.count_nonzero(others > scores[0] + _EQUAL))
    last = first + int(np.count_nonzero(np.abs(others - scores[0]) <= _EQUAL))
    ranks = range(first, last + 1)
    return {
        "MRR": sum(1 / rank for rank in ranks) / len(ranks),
        "R@1": sum(rank <= 1 for rank in ranks) / len(ranks),
        "R@5": sum(rank <= 5 for rank in ranks) / len(ranks),
        "NDCG@10": sum(rank <= 10 and 1 / math.log2(rank + 1) for rank in ranks) / len(ranks),
    }


def rank_sets(
    sets: Sequence[CaseSet], scorers: Sequence[CandidateScorer]
) -> tuple[RankingReport, ...]:
    """Rank every set with every scorer; reports come set by set."""
    reports: list[RankingReport] = []
    for each in sets:
        first: tuple[CaseOutcome, ...] | None = None
        for scorer in scorers:
            outcomes = _outcomes(each.cases, scorer)
            reports.append(
                ranking_report(
                    scorer.name,
                    scorer.configuration,
                    set_name=each.name,
                    outcomes=outcomes,
                    first=first,
                )
            )
            first = first or outcomes
    return tuple(reports)


def ranking_report(
    scorer: str,
    configuration: Mapping[str, Setting],
    *,
    set_name: str,
    outcomes: tuple[CaseOutcome, ...],
    first: tuple[CaseOutcome, ...] | None,
) -> RankingReport:
    """Sum up what a scorer's cases gave, compared with the first scorer's where there is one."""
    table = np.array([[outcome.scores[name] for name in MEASURES] for outcome in outcomes])
    by_kind: dict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        for kind, share in outcome.outranked.items():
            by_kind[kind].append(share)
    return RankingReport(
        scorer=scorer,
        configuration=configuration,
        set_name=set_name,
        estimates=dict(zip(MEASURES, bootstrap_intervals(table), strict=True)),
        outranked={kind: float(np.mean(by_kind[kind])) for kind in sorted(by_kind)},
        outcomes=outcomes,
        against_first=None if first is None else paired_test(_main(first), _main(outcomes)),
    )


def _outcomes(cases: Sequence[RankingCase], scorer: CandidateScorer) -> tuple[CaseOutcome, ...]:
    scored = zip(cases, scorer.scores(cases), strict=True)
    return tuple(
        CaseOutcome(case, rank_measures(scores), _outranked(case, scores))
        for case, scores in scored
    )


def _outranked(case: RankingCase, scores: FloatArray) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for distractor, score in zip(case.distractors, scores[1:], strict=True):
        lead = float(score - scores[0])
        found[distractor.kind].append(0.5 if abs(lead) <= _EQUAL else float(lead > 0))
    return {kind: float(np.mean(shares)) for kind, shares in found.items()}


def _main(outcomes: Sequence[CaseOutcome]) -> FloatArray:
    return np.array([outcome.scores[MAIN] for outcome in outcomes])
