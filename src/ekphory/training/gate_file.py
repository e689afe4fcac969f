"""What `ekphory train gate` writes: the gate, the models that it holds for, what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ekphory.errors import InvalidInput
from ekphory.evaluation.datasets import Dataset
from ekphory.evaluation.reranking.gate import GATE_FEATURES, GateOutcome
from ekphory.models.bundled_reranker import model_id
from ekphory.models.embedder import EmbedderIdentity
from ekphory.models.fitted_file import FittedFile
from ekphory.models.reranker import RerankingModel
from ekphory.retrieval.learned_gates import GATE_KIND
from ekphory.training.gate_thresholds import LearnedGate

_DIGITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRun:
    """How a gate was learned.

    Attributes:
        embedder, reranker: The models that it was learned with.
        learned_on: The questions.
        seed: Drew them.
        command: Finds the gate again.
        checked: What it does on benchmarks, by their names.
    """

    embedder: EmbedderIdentity
    reranker: RerankingModel
    learned_on: Dataset
    seed: int
    command: str
    checked: Mapping[str, GateOutcome]


def require_feature(feature: str) -> None:
    """Refuse a feature that no gate compares, before anything is learned.

    Raises:
        InvalidInput: There is no such feature.
    """
    if feature not in GATE_FEATURES:
        known = ", ".join(GATE_FEATURES)
        raise InvalidInput("feature", feature, "must be a feature of a gate", f"Give {known}")


def chosen_gate(gates: Sequence[LearnedGate], feature: str) -> LearnedGate:
    """Return the gate on a feature."""
    return next(gate for gate in gates if gate.feature == feature)


def gate_file(gate: LearnedGate, run: GateRun) -> FittedFile:
    """Return the file's content.

    A reranker that states no revision is named without one; no search uses such a gate.
    """
    outcomes = {"other training conversations": gate.checked, **run.checked}
    measured = {
        f"{name}, {what}": round(float(value), _DIGITS)
        for name, outcome in outcomes.items()
        for what, value in _measured(outcome).items()
    }
    return FittedFile(
        kind=GATE_KIND,
        command=run.command,
        models={
            "embedder": run.embedder.model_id,
            "reranker": model_id(run.reranker) or run.reranker.name,
        },
        data={each.name: each.sha256 for each in run.learned_on.files},
        seed=run.seed,
        measured=measured,
        values={
            "feature": gate.feature,
            "low": gate.thresholds.low,
            "high": gate.thresholds.high,
        },
    )


def _measured(outcome: GateOutcome) -> dict[str, float]:
    return {
        "questions": outcome.questions,
        "skipped": outcome.skipped,
        "MAP without reranking": outcome.first_stage,
        "MAP always reranked": outcome.always,
        "MAP through the gate": outcome.gated,
    }
