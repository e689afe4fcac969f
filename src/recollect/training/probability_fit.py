"""Fits the probability that a hit answers, after everything that orders hits."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recollect.evaluation.calibration import best_hit_error
from recollect.memory import Memory
from recollect.models.embedder import EmbeddingModel
from recollect.models.reranker import RerankingModel
from recollect.retrieval.calibration import ScopeCurves
from recollect.retrieval.pipeline import Pipeline
from recollect.retrieval.probability import (
    BELIEVING,
    BELIEVING_READ,
    COMPARING,
    COMPARING_READ,
    FEATURES,
    READ_FEATURES,
    AnswerCurve,
    HitCurves,
    answer_features,
    descending,
    read_features,
)
from recollect.retrieval.stages.cut import Cut
from recollect.retrieval.stages.fuse import Fuse
from recollect.retrieval.state import SearchState
from recollect.training.fusion_calibration import fused_with, most_likely
from recollect.training.probability_scopes import Scope

DEPTH = 10
"""So many of the best hits of a question are observed, all alike."""
_HELD_OUT = 4
DOUBTED = 0.05
"""Share of the questions with an answer that may be taken for some without one."""
EMPTY_BELOW = 0.2
_NO_SPREAD = 1e-9
_TURNS_WEIGHT_WHERE_READ = 0.2
"""The reranker learned from such turns, and knows them too well."""

FloatArray = NDArray[np.float64]
Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question's best hits.

    Attributes:
        scope: Number of the scope.
        kind: Of the scope.
        features: Shape (hits, features).
        relevant: 0 or 1, parallel.
        is_answered: Whether the answer is in the scope at all.
    """

    scope: int
    kind: str
    features: FloatArray
    relevant: FloatArray
    is_answered: bool


@dataclass(frozen=True, slots=True)
class HitFit:
    """Fitted curves, and how well they hold on scopes that they were not fitted on.

    Attributes:
        curves: The curves.
        questions: On how many they were fitted.
        errors: Error of the best hit on held-out scopes, by kind; see `best_hit_error`.
        empty: Share of the questions without an answer whose best hit is below `EMPTY_BELOW`.
    """

    curves: HitCurves
    questions: int
    errors: Mapping[str, float]
    empty: Mapping[str, float]


@dataclass(slots=True)
class _Observer:
    """The last stage before the cut, which remembers what is known of the candidates."""

    reads: bool
    number: int = 12
    name: str = "observe"
    needs: frozenset[str] = frozenset({"probability"})
    gives: frozenset[str] = frozenset({"calibrated"})
    seen: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to see without candidates, or where no reranker has read any."""
        self.seen = np.empty((0, 0))
        if self.reads and "reranker" not in state.candidates.scores:
            return "nothing was read"
        return None if len(state.candidates) and state.order != "time" else "nothing to see"

    def run(self, state: SearchState) -> SearchState:
        """See it."""
        self.seen = read_features(state) if self.reads else answer_features(state)
        return state


def observed(
    scopes: Iterable[Scope],
    preset: Pipeline,
    *,
    first_stage: ScopeCurves,
    embedder: EmbeddingModel | None,
    reranker: RerankingModel | None = None,
    on_progress: Told,
) -> list[Asked]:
    """Ask every scope its questions, and note the best hits of each.

    Args:
        scopes: What to ask.
        preset: A pipeline that ends with `Calibrate`, perhaps `PinRules`, and `Cut`.
        first_stage: Its curves, by which candidates are ordered before they are read.
        embedder: None for the bundled one.
        reranker: Reads the best candidates; None for none.
        on_progress: Told in words what has been asked.
    """
    observer = _Observer(reads=reranker is not None)
    pipeline = _watched(preset, observer, first_stage)
    found: list[Asked] = []
    for number, scope in enumerate(scopes):
        with (
            tempfile.TemporaryDirectory() as place,
            Memory(place, embedder=embedder, reranker=reranker) as memory,
        ):
            memory.add_many(scope.passages)
            found += [
                Asked(number, scope.kind, features, relevant, bool(answers))
                for answers, features, relevant in _answers(memory, scope, pipeline, observer)
            ]
        on_progress(f"{number + 1} scopes, {len(found):,} questions")
    return found


def _answers(
    memory: Memory, scope: Scope, pipeline: Pipeline, observer: _Observer
) -> Iterator[tuple[frozenset[str], FloatArray, FloatArray]]:
    for query, answers in scope.questions.items():
        hits = memory.search(query, k=DEPTH, now=scope.now, preset=pipeline).hits
        features = observer.seen[: len(hits)]
        if len(features):
            right = [hit.id in answers for hit in hits[: len(features)]]
            yield answers, features, np.array(right, np.float64)


def _watched(preset: Pipeline, observer: _Observer, first_stage: ScopeCurves) -> Pipeline:
    """Return the stages up to where probabilities are given, with an observer in that place."""
    stages = [
        fused_with(stage, first_stage) if isinstance(stage, Fuse) else stage
        for stage in preset.stages
        if stage.number <= observer.number and stage.name != "calibrate"
    ]
    return Pipeline("observed", [*stages, observer, Cut()])


def fit_hits(asked: Sequence[Asked], *, reads: bool) -> HitFit:
    """Fit on three of four scopes, measure on the fourth; the curves returned are those of all."""
    kept_back = [each for each in asked if each.scope % _HELD_OUT == _HELD_OUT - 1]
    known = [each for each in asked if each.scope % _HELD_OUT != _HELD_OUT - 1]
    trial = _fitted(known, reads=reads)
    kinds = sorted({each.kind for each in kept_back})
    names = READ_FEATURES if reads else FEATURES
    errors, empty = {}, {}
    for kind in kinds:
        of_kind = [each for each in kept_back if each.kind == kind]
        best = [float(descending(trial.probabilities(each.features, names))[0]) for each in of_kind]
        said, is_answered = np.array(best), np.array([each.is_answered for each in of_kind])
        right = np.array([each.relevant[0] for each in of_kind])
        errors[kind] = best_hit_error(said[is_answered], right[is_answered])
        if not is_answered.all():
            empty[kind] = float((said[~is_answered] < EMPTY_BELOW).mean())
    return HitFit(_fitted(asked, reads=reads), len(asked), errors, empty)


def _fitted(asked: Sequence[Asked], *, reads: bool) -> HitCurves:
    names = READ_FEATURES if reads else FEATURES
    answered = [each for each in asked if each.is_answered]
    counts = [np.full(len(each.relevant), _count(each, reads=reads)) for each in answered]
    answers = _regression(
        np.concatenate([each.features for each in answered]),
        np.concatenate([each.relevant for each in answered]),
        np.concatenate(counts),
        names=names,
        chosen=COMPARING_READ if reads else COMPARING,
    )
    answerable = _fit_belief(asked, names, BELIEVING_READ if reads else BELIEVING)
    firsts = np.array([each.features[0] for each in answered])
    least = float(np.quantile(answerable.log_odds(firsts, names), DOUBTED))
    return HitCurves(answers, answerable, least)


def _fit_belief(asked: Sequence[Asked], names: Sequence[str], chosen: Sequence[str]) -> AnswerCurve:
    """Fit whether there is an answer, on kinds of scopes that have questions without one."""
    counts = Counter((each.kind, each.is_answered) for each in asked)
    usable = [each for each in asked if counts[each.kind, False]]
    # Of each kind, the questions with an answer count as much as those without.
    weights = [len(usable) / counts[each.kind, each.is_answered] for each in usable]
    return _regression(
        np.array([each.features[0] for each in usable]),
        np.array([float(each.is_answered) for each in usable]),
        np.array(weights),
        names=names,
        chosen=chosen,
    )


def _regression(
    features: FloatArray,
    labels: FloatArray,
    counts: FloatArray,
    *,
    names: Sequence[str],
    chosen: Sequence[str],
) -> AnswerCurve:
    columns = features[:, [names.index(name) for name in chosen]]
    mean, spread = columns.mean(axis=0), columns.std(axis=0)
    spread[spread < _NO_SPREAD] = 1.0
    design = np.concatenate([(columns - mean) / spread, np.ones((len(columns), 1))], axis=1)
    *scaled, constant = most_likely(design, labels, counts)
    slopes = np.array(scaled) / spread
    intercept = constant - float(slopes @ mean)
    return AnswerCurve(intercept, dict(zip(chosen, slopes.tolist(), strict=True)))


def _count(asked: Asked, *, reads: bool) -> float:
    return _TURNS_WEIGHT_WHERE_READ if reads and asked.kind == "turns" else 1.0
