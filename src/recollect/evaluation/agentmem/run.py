"""What `recollect eval agentmem` measures, and its whole report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from recollect import __version__
from recollect.errors import InvalidInput
from recollect.evaluation.agentmem.cases import CaseSet
from recollect.evaluation.agentmem.labels import LabelledText
from recollect.evaluation.agentmem.ranking import RankingReport, rank_sets
from recollect.evaluation.agentmem.scorers import (
    Bm25Scorer,
    CandidateScorer,
    EmbedderScorer,
    WindowedScorer,
)
from recollect.evaluation.agentmem.traits import TraitScores, score_traits
from recollect.models.embedder import EmbeddingModel


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentmemReport:
    """Everything that was found.

    Attributes:
        sets: The cases.
        rankings: One scorer on one set each, set by set.
        traits: Importance and type, one source on one set of texts each.
        notes: What was not measured and why, a sentence each.
        version: Version of recollect that measured.
    """

    sets: tuple[CaseSet, ...]
    rankings: tuple[RankingReport, ...]
    traits: tuple[TraitScores, ...]
    notes: tuple[str, ...] = ()
    version: str = __version__


def run_agentmem(
    sets: Sequence[CaseSet],
    models: Mapping[str, EmbeddingModel],
    *,
    labelled: Mapping[str, Sequence[LabelledText]],
    notes: Sequence[str] = (),
    progress: Callable[[str], None],
) -> AgentmemReport:
    """Rank every set with every model and with BM25, and compare the heads of the models.

    A model reads the beginning of a text; where some text of a set is longer than a model's window,
    the model is ranked a second time with all windows read.

    Args:
        sets: What is ranked; sets without a case are refused.
        models: By the name that the report gives them. All are compared with the first.
        labelled: Texts with importance and type, by the name of their set.
        notes: Sentences on the models that could not be given; the report repeats them.
        progress: Is told what is being done.

    Raises:
        InvalidInput: A set has no case.
        MissingExtra: bm25s is not installed.
    """
    for each in sets:
        if not each.cases:
            raise InvalidInput("data", each.name, "it gives no case", "Give a larger set.")
    rankings: list[RankingReport] = []
    for each in sets:
        progress(f"ranking {each.name}")
        rankings += rank_sets([each], _scorers(each, models))
    progress("importance and type")
    return AgentmemReport(
        sets=tuple(sets),
        rankings=tuple(rankings),
        traits=score_traits(labelled, models),
        notes=tuple(notes),
    )


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
