"""What `ekphory eval rerank` runs: every contender over the same candidates of each set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ekphory import __version__
from ekphory.evaluation.comparison import Comparison, compare, score_table
from ekphory.evaluation.datasets import Dataset
from ekphory.evaluation.report import Latency, Report
from ekphory.evaluation.reranking.answerability import answerability
from ekphory.evaluation.reranking.candidate_file import candidates_of
from ekphory.evaluation.reranking.candidates import CandidateIdentity, CandidateSet, FloatArray
from ekphory.evaluation.reranking.contenders import Contender
from ekphory.evaluation.reranking.dialogue import (
    DialogueScores,
    DialogueSet,
    measure_dialogue,
)
from ekphory.evaluation.reranking.first_stage import ELSEWHERE_TOP, TOP
from ekphory.evaluation.reranking.latency import reading_latency
from ekphory.evaluation.reranking.measures import rerank_measures
from ekphory.evaluation.reranking.reliability import Reliability, reliability
from ekphory.evaluation.reranking.reranked_system import RerankedSystem
from ekphory.evaluation.reranking.scored_lists import Judge, ScoredList
from ekphory.evaluation.runner import Progress, evaluate, silent
from ekphory.evaluation.stats import Estimate
from ekphory.models.embedder import EmbeddingModel

READ = ELSEWHERE_TOP
"""Calibration looks at the candidates that a preset lets a reranker read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankOptions:
    """How the benchmark is run.

    Attributes:
        embedder: Embedder of the first stage.
        top: How many candidates each question has.
        first_stage_share: How much the first stage's order weighs beside a reranker.
        candidates: File of the candidates; None keeps them nowhere.
        progress: Is told how far things are.
    """

    embedder: EmbeddingModel
    top: int = TOP
    first_stage_share: float = 0.0
    candidates: Path | None = None
    progress: Progress = silent


@dataclass(frozen=True, slots=True, kw_only=True)
class ContenderResult:
    """One contender on one set.

    Attributes:
        report: Ranking measures, per category and overall; its latency is that of all candidates.
        against_first_stage: How the ranking differs from the first stage's; None for that itself.
        reading: Latency by the number of candidates read; empty for the first stage alone.
        is_calibrated: Whether its probabilities were fitted, or are its scores as they come.
        reliability: Whether its probabilities hold; None where nothing was found.
        answerable: AUROC of the highest probability; None for a set of one pool.
    """

    report: Report
    against_first_stage: Comparison | None
    reading: Mapping[int, Latency]
    is_calibrated: bool
    reliability: Reliability | None
    answerable: Estimate | None

    @property
    def name(self) -> str:
        """The contender's name."""
        return self.report.system


@dataclass(frozen=True, slots=True)
class RerankedSet:
    """All contenders on one set; the first stage alone comes first."""

    dataset: Dataset
    identity: CandidateIdentity
    results: tuple[ContenderResult, ...]


@dataclass(frozen=True, slots=True)
class OwnSets:
    """The sets that come with ekphory and are always measured.

    Attributes:
        dialogue: Questions that need the dialogue before them.
        languages: Questions in other languages.
    """

    dialogue: DialogueSet
    languages: Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankReport:
    """Everything that was found.

    Attributes:
        sets: Set by set.
        dialogue: The questions that need the dialogue before them, contender by contender.
        languages: The questions in other languages.
        version: Version of ekphory that measured.
    """

    sets: tuple[RerankedSet, ...]
    dialogue: tuple[DialogueScores, ...]
    languages: RerankedSet
    version: str = __version__


def run_benchmark(
    datasets: Sequence[Dataset],
    own: OwnSets,
    contenders: Sequence[Contender],
    options: RerankOptions,
) -> Iterator[RerankReport]:
    """Measure all contenders on ekphory's own sets, then set by set.

    Args:
        datasets: What to measure on.
        own: The sets that come with ekphory.
        contenders: Who takes part; the first one is the first stage alone.
        options: How.

    Yields:
        The report so far, after ekphory's own sets and after every other; the last is whole.

    Raises:
        DatasetError: The file of candidates does not fit.
        ServiceError, ModelError: A reranker failed.
    """
    candidates = _candidates(own.dialogue.dataset, options)
    report = RerankReport(
        sets=(),
        dialogue=tuple(
            measure_dialogue(own.dialogue, Judge(contender, candidates, own.dialogue.dataset.pools))
            for contender in contenders
        ),
        languages=_measured(own.languages, contenders, options),
    )
    yield report
    for dataset in datasets:
        report = replace(report, sets=(*report.sets, _measured(dataset, contenders, options)))
        yield report


def _measured(
    dataset: Dataset, contenders: Sequence[Contender], options: RerankOptions
) -> RerankedSet:
    candidates = _candidates(dataset, options)
    results: list[ContenderResult] = []
    for contender in contenders:
        judge = Judge(contender, candidates, dataset.pools)
        first = results[0].report if results else None
        results.append(measure_contender(dataset, judge, options, first_stage=first))
    return RerankedSet(dataset, candidates.identity, tuple(results))


def _candidates(dataset: Dataset, options: RerankOptions) -> CandidateSet:
    return candidates_of(
        dataset,
        embedder=options.embedder,
        top=options.top,
        file=options.candidates,
        progress=options.progress,
    )


def measure_contender(
    dataset: Dataset, judge: Judge, options: RerankOptions, *, first_stage: Report | None
) -> ContenderResult:
    """Measure one contender on one set.

    Args:
        dataset: Questions and judgements.
        judge: The contender and the candidates.
        options: How.
        first_stage: What the first stage alone gave, to compare with; None for that itself.
    """
    system = RerankedSystem(judge, options.first_stage_share)
    report = evaluate(
        dataset,
        system,
        measures=rerank_measures(top=options.top),
        depth=options.top,
        progress=lambda activity, done, total: options.progress(
            f"{judge.contender.name}: {activity}", done, total
        ),
    )
    return ContenderResult(
        report=report,
        against_first_stage=None
        if first_stage is None
        else compare(score_table(first_stage), score_table(report)),
        reading=reading_latency(judge),
        is_calibrated=judge.is_calibrated,
        reliability=reliability([_labelled(scored, dataset) for scored in system.scored.values()]),
        answerable=_answerable(judge, system.scored),
    )


def _labelled(scored: ScoredList, dataset: Dataset) -> tuple[FloatArray, FloatArray]:
    gains = dataset.qrels[scored.found.key]
    answers = [float(gains.get(passage_id, 0) > 0) for passage_id in scored.found.ids[:READ]]
    return scored.probabilities[:READ], np.array(answers, np.float64)


def _answerable(judge: Judge, own: Mapping[tuple[str, str], ScoredList]) -> Estimate | None:
    elsewhere = judge.candidates.elsewhere
    if not elsewhere:
        return None
    return answerability(
        np.array([_highest(own[found.key]) for found in elsewhere]),
        np.array([_highest(judge.score(found, most=READ)) for found in elsewhere]),
    )


def _highest(scored: ScoredList) -> float:
    return float(scored.probabilities[:READ].max(initial=0.0))
