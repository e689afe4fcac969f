"""The gate that `ekphory train gate` learned: when a reranker has nothing to gain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast, get_args

from ekphory.errors import ModelError
from ekphory.models.bundled_reranker import model_id
from ekphory.models.embedder import EmbedderIdentity
from ekphory.models.fitted_file import FITTED, FittedFile, read_fitted, require_models
from ekphory.models.reranker import RerankingModel
from ekphory.retrieval.gate_features import GateFeature
from ekphory.retrieval.reranker_gate import GateDecision, GateThresholds

GATE_KIND = "gate"
GATE_FILE = FITTED / "gate.json"
"""The package's own gate."""


@dataclass(frozen=True, slots=True)
class GateBand:
    """The band of one feature within which reranking pays.

    Attributes:
        feature: What of the first stage's scores is compared.
        thresholds: The ends of the band, both inside.
    """

    feature: GateFeature
    thresholds: GateThresholds

    def decide(self, value: float) -> GateDecision:
        """Say whether to rerank where the feature has this value."""
        low, high = self.thresholds.low, self.thresholds.high
        inside = low <= value <= high
        place = "within" if inside else "outside"
        shown = f"{self.feature}={value:.4f} {place} [{low:.4f}, {high:.4f}]"
        return GateDecision(inside, 1.0, f"auto-gate-{'pass' if inside else 'skip'}: {shown}")


@dataclass(frozen=True, slots=True)
class FittedGate:
    """A gate and the two models that it was learned with.

    How far scores spread is a property of the embedder, and what there is to gain one of the
    reranker, so a gate holds for the two it was learned with.

    Attributes:
        file: Where it comes from.
        band: What it compares.
    """

    file: FittedFile
    band: GateBand

    def band_for(self, embedder: EmbedderIdentity, reranker: RerankingModel) -> GateBand | None:
        """Return the band for two models; None for models of other names, which have no gate.

        Raises:
            ModelError: The models have the names of those of the file, and another revision.
        """
        reranker_id = model_id(reranker)
        used = {"embedder": embedder.model_id, "reranker": reranker_id or ""}
        if reranker_id is None or _names(used) != _names(self.file.models):
            return None
        require_models(self.file, used)
        return self.band


@cache
def read_gate(path: Path = GATE_FILE) -> FittedGate:
    """Read what `ekphory train gate` wrote, once a process.

    Raises:
        ModelError: There is no such file, it cannot be read, or it holds something else.
    """
    file = read_fitted(path, kind=GATE_KIND)
    try:
        feature, low, high = (file.values[name] for name in ("feature", "low", "high"))
        if feature not in get_args(GateFeature):
            raise ValueError(f"feature must be one of {get_args(GateFeature)}, got {feature!r}")
        thresholds = GateThresholds(low=float(low), high=float(high))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{path}: must have the values feature, low and high "
            f"({type(error).__name__}: {error}). Write it anew with `{file.command}`."
        ) from error
    return FittedGate(file, GateBand(cast("GateFeature", feature), thresholds))


def _names(models: Mapping[str, str]) -> dict[str, str]:
    """Return the models' names by role, without their revisions."""
    return {role: model.rpartition("@")[0] for role, model in models.items()}
