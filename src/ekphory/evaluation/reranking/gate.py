"""What a gate saves and what it costs: how often it skips, and how much of the gain it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ekphory.evaluation.datasets import Dataset
from ekphory.evaluation.metrics import average_precision
from ekphory.evaluation.reranking.candidates import FloatArray
from ekphory.evaluation.reranking.scored_lists import Judge
from ekphory.evaluation.runner import Progress, silent
from ekphory.retrieval.gate_features import GateFeature, gate_feature
from ekphory.retrieval.reranker_gate import GateThresholds

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
        """Give some of the questions."""
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
    progress: Progress = silent,
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
