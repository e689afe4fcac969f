"""Several sets put together: the form as a whole, in which every query counts the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ekphory.evaluation.agentmem.cases import CaseSet, RankingCase
from ekphory.evaluation.agentmem.ranking import RankingReport, ranking_report
from ekphory.evaluation.agentmem.scorers import windowed_name

POOLED = "all conversations"


def pooled_set(sets: Sequence[CaseSet]) -> CaseSet:
    """Put the cases of several sets into one; a case's id gets its set's name before it."""
    missing: Counter[str] = Counter()
    for each in sets:
        missing.update(each.missing)
    return CaseSet(
        name=POOLED,
        cases=tuple(_of_set(each.name, case) for each in sets for case in each.cases),
        origin={"sets": ", ".join(each.name for each in sets)},
        missing=missing,
    )


def pooled_rankings(rankings: Sequence[Sequence[RankingReport]]) -> tuple[RankingReport, ...]:
    """Put together what each scorer reached, set by set, without ranking anything again.

    Where a set has no row with all windows, no text of it has several, and the model's own row says
    the same. Words stay weighed set by set where BM25 ranks.

    Args:
        rankings: For each set the reports of its scorers; the first of each set is compared with.
    """
    pooled: list[RankingReport] = []
    for scorer in _scorers(rankings):
        reports = [_of(scorer, each) for each in rankings]
        pooled.append(
            ranking_report(
                scorer,
                next(each.configuration for each in reports if each.scorer == scorer),
                set_name=POOLED,
                outcomes=tuple(
                    replace(outcome, case=_of_set(each.set_name, outcome.case))
                    for each in reports
                    for outcome in each.outcomes
                ),
                first=pooled[0].outcomes if pooled else None,
            )
        )
    return tuple(pooled)


def _of_set(set_name: str, case: RankingCase) -> RankingCase:
    return replace(case, id=f"{set_name}/{case.id}")


def _scorers(rankings: Sequence[Sequence[RankingReport]]) -> tuple[str, ...]:
    """Give every system that ranks all sets, each before itself with all windows."""
    named = {report.scorer for each in rankings for report in each}
    everywhere = [report.scorer for report in min(rankings, key=len)]
    both = [each for name in everywhere for each in (name, windowed_name(name))]
    return tuple(dict.fromkeys(name for name in both if name in named))


def _of(scorer: str, rankings: Sequence[RankingReport]) -> RankingReport:
    found = {each.scorer: each for each in rankings}
    plain = {windowed_name(name): name for name in found}
    return found[scorer] if scorer in found else found[plain[scorer]]
