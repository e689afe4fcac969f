"""What `ekphory eval agentmem` measures, and its whole report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from ekphory import __version__
from ekphory.errors import InvalidInput
from ekphory.evaluation.agentmem.cases import CaseSet
from ekphory.evaluation.agentmem.labels import LabelledText
from ekphory.evaluation.agentmem.pooled import POOLED, pooled_rankings, pooled_set
from ekphory.evaluation.agentmem.ranking import RankingReport, rank_sets
from ekphory.evaluation.agentmem.scorers import (
    Bm25Scorer,
    CandidateScorer,
    EmbedderScorer,
    WindowedScorer,
)
from ekphory.evaluation.agentmem.traits import TraitScores, score_traits
from ekphory.models.embedder import EmbeddingModel


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentmemReport:
    """Everything that was found.

    Attributes:
        sets: The cases; last, where there are several conversation sets, all of them together.
        rankings: One scorer on one set each, set by set.
        traits: Importance and type, one source on one set of texts each.
        notes: What was not measured and why, a sentence each.
        version: Version of ekphory that measured.
    """

    sets: tuple[CaseSet, ...]
    rankings: tuple[RankingReport, ...]
    traits: tuple[TraitScores, ...]
    notes: tuple[str, ...] = ()
    version: str = __version__


def run_agentmem(
    generated: CaseSet,
    conversations: Sequence[CaseSet],
    models: Mapping[str, EmbeddingModel],
    *,
    labelled: Mapping[str, Sequence[LabelledText]],
    notes: Sequence[str] = (),
    progress: Callable[[str], None],
) -> AgentmemReport:
    """Rank every set with every model and with BM25, and compare the heads of the models.

    A model reads the beginning of a text; where some text of a set is longer than a model's window,
    the model is ranked a second time with all windows read. Several conversation sets are put
    together as well, every query counting the same.

    Args:
        generated: The form on generated memories.
        conversations: The form on real text, by set. One without a case is refused, and so is a
            second one of the same name.
        models: By the name that the report gives them. All are compared with the first.
        labelled: Texts with importance and type, by the name of their set.
        notes: Sentences on the models that could not be given; the report repeats them.
        progress: Is told what is being done.

    Raises:
        InvalidInput: A set has no case, or the name of another.
        MissingExtra: bm25s is not installed.
    """
    sets = [generated, *conversations]
    _check(sets)
    rankings = [_ranked(each, models, progress) for each in sets]
    if len(conversations) > 1:
        sets.append(pooled_set(conversations))
        rankings.append(pooled_rankings(rankings[1:]))
    progress("importance and type")
    return AgentmemReport(
        sets=tuple(sets),
        rankings=tuple(report for each in rankings for report in each),
        traits=score_traits(labelled, models),
        notes=tuple(notes),
    )


def _check(sets: Sequence[CaseSet]) -> None:
    names = [POOLED]
    for each in sets:
        if not each.cases:
            raise InvalidInput("data", each.name, "it gives no case", "Give a larger set.")
        if each.name in names:
            remedy = "Give each set once, from a folder of another name."
            raise InvalidInput("data", each.name, "there is a set of this name already", remedy)
        names.append(each.name)


def _ranked(
    cases: CaseSet, models: Mapping[str, EmbeddingModel], progress: Callable[[str], None]
) -> tuple[RankingReport, ...]:
    progress(f"ranking {cases.name}")
    return rank_sets([cases], _scorers(cases, models))


def _scorers(cases: CaseSet, models: Mapping[str, EmbeddingModel]) -> list[CandidateScorer]:
    """Give every model, every model that reads all windows where some text has several, BM25."""
    windowed = [WindowedScorer(*item) for item in models.items()]
    return [
        *(EmbedderScorer(*item) for item in models.items()),
        *(each for each in windowed if each.reads_more(cases.cases)),
        Bm25Scorer(),
    ]


def report_json(report: AgentmemReport) -> dict[str, object]:
    """Give the whole report as values that JSON can hold; of a case its id and scores alone."""
    return {
        "version": report.version,
        "notes": list(report.notes),
        "sets": [
            {
                "name": each.name,
                "cases": len(each.cases),
                "origin": dict(each.origin),
                "missing": dict(each.missing),
            }
            for each in report.sets
        ],
        "rankings": [_ranking_json(each) for each in report.rankings],
        "traits": [asdict(each) for each in report.traits],
    }


def _ranking_json(ranking: RankingReport) -> dict[str, object]:
    return {
        "system": ranking.scorer,
        "configuration": dict(ranking.configuration),
        "set": ranking.set_name,
        "scores": {name: asdict(estimate) for name, estimate in ranking.estimates.items()},
        "outranked": dict(ranking.outranked),
        "against_first": None if ranking.against_first is None else asdict(ranking.against_first),
        "cases": [
            {"id": outcome.case.id, "scores": dict(outcome.scores)} for outcome in ranking.outcomes
        ],
    }
