"""What `ekphory eval rerank` runs: every contender over the same candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ekphory import __version__
from ekphory.errors import DatasetError
from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.gate import GateFeature, GateThresholds, gate_feature
from ekphory.retrieval.stages.rerank import score_relevance
from ekphory_lab.evaluation import runner
from ekphory_lab.evaluation.datasets import Dataset, EvaluationQuery, Passage
from ekphory_lab.evaluation.metrics import (
    Estimate,
    FloatArray,
    Latency,
    Measure,
    average_precision,
    expected_calibration_error,
    f1,
    measure,
    ndcg,
    resampled_estimate,
)
from ekphory_lab.evaluation.options import RerankOptions
from ekphory_lab.evaluation.reranking.candidates import (
    ELSEWHERE_TOP,
    CandidateIdentity,
    CandidateList,
    CandidateSet,
    Contender,
    Judge,
    ScoredList,
    candidates_of,
    given_candidates,
    read_given,
)
from ekphory_lab.evaluation.reranking.questions import DialogueScores, DialogueSet, measure_dialogue

# A contender behind the evaluation's door: what it searches is the fixed candidates.


@dataclass(slots=True)
class RerankedSystem:
    """A retriever factory that orders the candidates of each question anew.

    Attributes:
        judge: The contender and the candidates.
        first_stage_share: How much the first stage's order weighs beside the reranker.
        scored: What it has scored so far, by question.
    """

    judge: Judge
    first_stage_share: float = 0.0
    scored: dict[tuple[str, str], ScoredList] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The contender's name."""
        return self.judge.contender.name

    @property
    def configuration(self) -> Mapping[str, runner.Setting]:
        """The reranker, and what the candidates were made from."""
        identity = self.judge.candidates.identity
        return {
            "reranker": self.judge.contender.name,
            "first_stage_share": self.first_stage_share,
            "candidates": identity.top,
            "embedder": identity.embedder,
            "first_stage": identity.first_stage,
        }

    def retriever(self, _pool: str, _passages: Sequence[Passage], /) -> runner.Retriever:
        """Return the retriever of a pool; there is nothing to index."""
        by_key = {found.key: found for found in self.judge.candidates.own}

        def search(query: EvaluationQuery, k: int, /) -> list[runner.Scored]:
            scored = self.scored[query.key] = self.judge.score(by_key[query.key])
            order = scored.order(first_stage_share=self.first_stage_share)[:k]
            ids = scored.found.ids
            return [(ids[place], float(scored.probabilities[place])) for place in order]

        return search


# The measures of the published table.

F1_CUTOFF = 1
"""The publication does not say what its F1 is. Of all cuts only the first passage fits: its best
F1 is .622 beside R@3 .805, and at two passages a question with one answer cannot exceed .667."""


def rerank_measures(*, top: int) -> tuple[Measure, ...]:
    """Return MAP, MRR, NDCG@1/3/10, NDCG, R@3/5/20 and F1, in the order of the published table.

    Args:
        top: How many candidates there are; `NDCG` is taken over all of them.
    """
    return (
        *map(measure, ("MAP", "MRR", "NDCG@1", "NDCG@3", "NDCG@10")),
        Measure("NDCG", partial(ndcg, cutoff=top)),
        *map(measure, ("R@3", "R@5", "R@20")),
        Measure("F1", partial(f1, cutoff=F1_CUTOFF)),
    )


# Whether the highest probability tells a question with an answer from one without.

_RESAMPLES = 1_000


def auroc(positive: FloatArray, negative: FloatArray) -> float:
    """Area under the curve of true against false positives (Hanley and McNeil, 1982).

    It is the share of pairs, one question in its own conversation and any question in another one,
    in which the former has the higher value; equal values count as half.
    """
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, side="left")
    not_above = np.searchsorted(ordered, positive, side="right")
    return float((below + not_above).mean() / (2 * len(negative)))


# How long a reranker takes to read as many candidates as the presets give it.

READ_COUNTS = (30, 50)
QUESTIONS = 40


def reading_latency(judge: Judge) -> Mapping[int, Latency]:
    """Time the reading of the first 30 and the first 50 candidates, one question at a time.

    The first question is put once before, unmeasured. A question with fewer candidates is left
    out, and so is a count that none has.

    Args:
        judge: The contender and the candidates.

    Returns:
        By the number of candidates; empty for the first stage alone.
    """
    measured: dict[int, Latency] = {}
    for count in READ_COUNTS if judge.contender.reranker is not None else ():
        lists = [found for found in judge.candidates.own if len(found.ids) >= count]
        chosen = lists[:: max(1, len(lists) // QUESTIONS)][:QUESTIONS]
        _, *times = [_milliseconds(judge, found, count) for found in (*chosen[:1], *chosen)] or [0]
        if times:
            measured[count] = Latency.of(times)
    return measured


def _milliseconds(judge: Judge, found: CandidateList, count: int) -> float:
    reranker = judge.reranker(found.searched)
    if reranker is None:
        return 0.0
    passages = judge.candidates.read(found, most=count)
    started = perf_counter()
    score_relevance(reranker, found.asked, passages, seconds=None)
    return (perf_counter() - started) * 1_000


# What a gate saves and what it costs: how often it skips, and how much of the gain it keeps.

GATE_FEATURES: tuple[GateFeature, ...] = get_args(GateFeature)


@dataclass(frozen=True, slots=True)
class GateCases:
    """What reranking changes, question by question.

    Attributes:
        pools: Which pool each question was put to, shape (questions,).
        features: Value of each feature, likewise.
        first_stage: Average precision of the first stage's order, likewise.
        reranked: That of the reranked order, likewise.
    """

    pools: NDArray[np.str_]
    features: dict[GateFeature, FloatArray]
    first_stage: FloatArray
    reranked: FloatArray

    @property
    def gains(self) -> FloatArray:
        """How much each question gains by reranking."""
        return self.reranked - self.first_stage

    def only(self, chosen: NDArray[np.bool_]) -> GateCases:
        """Return some of the questions."""
        features = {name: values[chosen] for name, values in self.features.items()}
        return GateCases(
            self.pools[chosen], features, self.first_stage[chosen], self.reranked[chosen]
        )


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """A gate on a set of questions.

    Attributes:
        questions: How many there are.
        skipped: Share of them that are not reranked.
        gain_kept: Share of the MAP that reranking gains which the gate keeps; NaN without a gain.
        first_stage, always, gated: MAP without reranking, always reranked, and through the gate.
    """

    questions: int
    skipped: float
    gain_kept: float
    first_stage: float
    always: float
    gated: float


def gate_cases(
    dataset: Dataset,
    judge: Judge,
    *,
    read: int,
    first_stage_share: float = 0.0,
    progress: runner.Progress = runner.silent,
) -> GateCases:
    """Rerank every question once, and say what that changed.

    Args:
        dataset: Judgements.
        judge: The reranker and the candidates.
        read: How many candidates it reads; the others follow in the first stage's order.
        first_stage_share: How much the first stage's order weighs beside the reranker.
        progress: Is told after each question.
    """
    features: list[list[float]] = []
    precisions: list[tuple[float, float]] = []
    for done, found in enumerate(judge.candidates.own, start=1):
        gains = dataset.qrels[found.key]
        order = judge.score(found, most=read).order(first_stage_share=first_stage_share)
        reranked = [found.ids[place] for place in order]
        precisions.append((average_precision(gains, found.ids), average_precision(gains, reranked)))
        scores = {name: found.column(name) for name in ("cosine", "probability")}
        features.append([gate_feature(name, scores) for name in GATE_FEATURES])
        progress("rerank", done, len(judge.candidates.own))
    columns = np.array(features, np.float64).T
    first_stage, always = np.array(precisions, np.float64).T
    return GateCases(
        np.array([found.searched for found in judge.candidates.own]),
        dict(zip(GATE_FEATURES, columns, strict=True)),
        first_stage,
        always,
    )


def passes(cases: GateCases, feature: GateFeature, thresholds: GateThresholds) -> NDArray[np.bool_]:
    """Say which questions lie within the thresholds, both included, and are reranked."""
    values = cases.features[feature]
    return np.asarray((values >= thresholds.low) & (values <= thresholds.high))


def gate_outcome(cases: GateCases, reranked: NDArray[np.bool_]) -> GateOutcome:
    """Say what a gate does that reranks these questions and no others."""
    gain = float(cases.gains.sum())
    return GateOutcome(
        questions=len(reranked),
        skipped=float(1 - reranked.mean()),
        gain_kept=float(cases.gains[reranked].sum()) / gain if gain > 0 else float("nan"),
        first_stage=float(cases.first_stage.mean()),
        always=float(cases.reranked.mean()),
        gated=float(np.where(reranked, cases.reranked, cases.first_stage).mean()),
    )


# Whether a contender's probabilities hold, candidate by candidate.

BINS = 15
"""As many as in Guo et al., "On Calibration of Modern Neural Networks", ICML 2017."""
PRECISIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
LEAST_ABOVE = 20
"""A threshold that fewer candidates reach says nothing of the precision above it."""


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Candidates of like probability.

    Attributes:
        said: Their mean probability.
        right: How many of them answer, as a share.
        candidates: How many there are.
    """

    said: float
    right: float
    candidates: int


@dataclass(frozen=True, slots=True)
class CalibrationError:
    """Expected calibration error over 15 bins.

    Attributes:
        equal_width: Bins of equal width, each weighted by its size.
        equal_mass: Bins of equally many candidates: finer where most probabilities are.
    """

    equal_width: float
    equal_mass: float


@dataclass(frozen=True, slots=True)
class PrecisionThreshold:
    """Where to cut for a precision.

    Attributes:
        precision: What is wanted of the candidates above.
        threshold: The least probability at which it is reached; None where it never is.
        recall: Share of the relevant candidates above; 0 without a threshold.
    """

    precision: float
    threshold: float | None
    recall: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """How far probabilities are from what is observed.

    Attributes:
        candidates, relevant: How many were looked at, and how many of them answer.
        all_candidates: The error over all of them.
        best: The error over the candidate of each question that has the highest probability.
        bins: Those of equal width that hold a candidate, for the picture.
        thresholds: By the precision that is wanted.
    """

    candidates: int
    relevant: int
    all_candidates: CalibrationError
    best: CalibrationError
    bins: tuple[ReliabilityBin, ...]
    thresholds: tuple[PrecisionThreshold, ...]


def reliability(questions: Sequence[tuple[FloatArray, FloatArray]]) -> Reliability | None:
    """Compare probabilities with labels.

    Args:
        questions: For each question the probabilities of its candidates and, parallel, 1 for those
            that answer and 0 for the others.

    Returns:
        None where there is no candidate at all.
    """
    filled = [question for question in questions if len(question[0])]
    if not filled:
        return None
    said = np.concatenate([probabilities for probabilities, _ in filled])
    right = np.concatenate([answers for _, answers in filled])
    best = [(said.max(), answers[said.argmax()]) for said, answers in filled]
    best_said, best_right = np.array(best, np.float64).T
    return Reliability(
        candidates=len(said),
        relevant=int(right.sum()),
        all_candidates=calibration_error(said, right),
        best=calibration_error(best_said, best_right),
        bins=reliability_bins(said, right),
        thresholds=tuple(precision_threshold(said, right, each) for each in PRECISIONS),
    )


def calibration_error(said: FloatArray, right: FloatArray) -> CalibrationError:
    """Mean |said - right| over bins, weighted by their size; shapes (observations,)."""
    order = np.argsort(said, kind="stable")
    groups = [group for group in np.array_split(order, BINS) if len(group)]
    gaps = [abs(said[group].mean() - right[group].mean()) * len(group) for group in groups]
    return CalibrationError(
        expected_calibration_error(said, right, bins=BINS), float(sum(gaps) / len(said))
    )


def reliability_bins(said: FloatArray, right: FloatArray) -> tuple[ReliabilityBin, ...]:
    """Group observations into bins of equal width; empty ones are left out."""
    places = np.minimum((said * BINS).astype(np.int64), BINS - 1)
    groups = (places == place for place in range(BINS))
    return tuple(
        ReliabilityBin(float(said[group].mean()), float(right[group].mean()), int(group.sum()))
        for group in groups
        if group.any()
    )


def precision_threshold(
    said: FloatArray, right: FloatArray, precision: float, *, least: int = LEAST_ABOVE
) -> PrecisionThreshold:
    """Find the least probability from which on so many of the candidates answer.

    At least `least` candidates must lie above it.
    """
    order = np.argsort(-said, kind="stable")
    ordered, found = said[order], np.cumsum(right[order])
    above = np.arange(1, len(said) + 1)
    # Of equal probabilities only the last is a place to cut.
    is_cut = np.append(ordered[1:] != ordered[:-1], True)
    enough = is_cut & (above >= least) & (found / above >= precision)
    if not enough.any():
        return PrecisionThreshold(precision, None, 0.0)
    last = int(np.flatnonzero(enough)[-1])
    recall = float(found[last] / max(1.0, found[-1]))
    return PrecisionThreshold(precision, float(ordered[last]), recall)


# What `ekphory eval rerank` runs: every contender over the same candidates of each set.

READ = ELSEWHERE_TOP
"""Calibration looks at the candidates that a preset lets a reranker read."""


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

    report: runner.Report
    against_first_stage: runner.Comparison | None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankRun:
    """How the benchmark is run.

    Attributes:
        asked: Which candidates, and how they are ordered.
        contenders: Who takes part; the first one is the first stage alone.
        embedder: Embedder of the first stage.
        progress: Is told how far things are.
    """

    asked: RerankOptions
    contenders: Sequence[Contender]
    embedder: EmbeddingModel
    progress: runner.Progress = runner.silent

    def measure(
        self, datasets: Sequence[Dataset], dialogue: DialogueSet, languages: Dataset
    ) -> Iterator[RerankReport]:
        """Measure all contenders on ekphory's own sets, then set by set.

        Args:
            datasets: What to measure on.
            dialogue: Questions that need the dialogue before them; always measured.
            languages: Questions in other languages; always measured.

        Yields:
            The report so far, after ekphory's own sets and after every other; the last is whole.

        Raises:
            DatasetError: The file of candidates does not fit, or has none of any set's questions.
            ServiceError, ModelError: A reranker failed.
        """
        self._check_given(datasets)
        candidates = self.candidates_for(dialogue.dataset)
        report = RerankReport(
            sets=(),
            dialogue=tuple(
                measure_dialogue(dialogue, Judge(contender, candidates, dialogue.dataset.pools))
                for contender in self.contenders
            ),
            languages=self._measure_set(languages),
        )
        yield report
        for dataset in datasets:
            report = replace(report, sets=(*report.sets, self._measure_set(dataset)))
            yield report

    def candidates_for(self, dataset: Dataset) -> CandidateSet:
        """Return the candidates of a set: given ones, those of the file, or new ones."""
        file, top = self.asked.candidates, self.asked.top
        if file is not None and file.exists() and (lists := read_given(file)) is not None:
            if found := given_candidates(dataset, lists, file=file, top=top):
                return found
            # What comes with ekphory is not in anybody's file.
            file = None
        return candidates_of(
            dataset, embedder=self.embedder, top=top, file=file, progress=self.progress
        )

    def _check_given(self, datasets: Sequence[Dataset]) -> None:
        """Refuse somebody's candidates of other sets: ours would take their place."""
        file, top = self.asked.candidates, self.asked.top
        if file is None or not file.exists() or (lists := read_given(file)) is None:
            return
        if not any(given_candidates(each, lists, file=file, top=top) for each in datasets):
            names = ", ".join(each.name for each in datasets)
            raise DatasetError(
                f"{file.name}: has no candidates for a question of {names}. Give the sets' own "
                "query_id in each row."
            )

    def _measure_set(self, dataset: Dataset) -> RerankedSet:
        candidates = self.candidates_for(dataset)
        results: list[ContenderResult] = []
        for contender in self.contenders:
            judge = Judge(contender, candidates, dataset.pools)
            first = results[0].report if results else None
            results.append(self._measure_contender(dataset, judge, first))
        return RerankedSet(dataset, candidates.identity, tuple(results))

    def _measure_contender(
        self, dataset: Dataset, judge: Judge, first_stage: runner.Report | None
    ) -> ContenderResult:
        system = RerankedSystem(judge, self.asked.share)
        report = runner.evaluate(
            dataset,
            system,
            measures=rerank_measures(top=self.asked.top),
            depth=self.asked.top,
            progress=lambda activity, done, total: self.progress(
                f"{judge.contender.name}: {activity}", done, total
            ),
        )
        labelled = [_labelled(scored, dataset) for scored in system.scored.values()]
        return ContenderResult(
            report=report,
            against_first_stage=None
            if first_stage is None
            else runner.compare(first_stage, report),
            reading=reading_latency(judge),
            is_calibrated=judge.is_calibrated,
            reliability=reliability(labelled),
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
    here = np.array([_highest(own[found.key]) for found in elsewhere])
    there = np.array([_highest(judge.score(found, most=READ)) for found in elsewhere])
    return resampled_estimate(auroc, here, there, resamples=_RESAMPLES)


def _highest(scored: ScoredList) -> float:
    return float(scored.probabilities[:READ].max(initial=0.0))
