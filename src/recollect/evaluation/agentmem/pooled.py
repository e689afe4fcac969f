"""Several sets put together: the form as a whole, in which every query counts the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from recollect.evaluation.agentmem.cases import CaseSet
from recollect.evaluation.agentmem.ranking import RankingReport, ranking_report
from recollect.evaluation.agentmem.scorers import windowed_name

POOLED = "all conversations"


def pooled_set(sets: Sequence[CaseSet]) -> CaseSet:
    """Put the cases of several sets into one."""
    missing: Counter[str] = Counter()
    for each in sets:
        missing.update(each.missing)
    return CaseSet(
        name=POOLED,
        cases=tuple(case for each in sets for case in each.cases),
        origin={"sets": ", ".join(each.name for each in sets)},
        missing=missing,
    )


def pooled_rankings(rankings: Sequence[Sequence[RankingReport]]) -> tuple[RankingReport, ...]:
    """Put together what each scorer reached, set by set, without ranking anything again.

    Where a set has no row with all windows, no text of it has several, and the model's own row says
    the same.

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
                outcomes=tuple(outcome for each in reports for outcome in each.outcomes),
                first=pooled[0].outcomes if pooled else None,
            )
        )
    return tuple(pooled)


def _scorers(rankings: Sequence[Sequence[RankingReport]]) -> tuple[str, ...]:
    # The set with most rows first, so that every system keeps its place in the tables.
    longest = sorted(rankings, key=len, reverse=True)
    return tuple(dict.fromkeys(report.scorer for each in longest for report in each))


def _of(scorer: str, rankings: Sequence[RankingReport]) -> RankingReport:
    found = {each.scorer: each for each in rankings}
    plain = {windowed_name(name): name for name in found}
    return found[scorer] if scorer in found else found[plain[scorer]]
