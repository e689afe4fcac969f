"""Gates that `recollect train gate` learned: when a reranker has nothing to gain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recollect.models.bundled_reranker import TINY_RERANKER
from recollect.retrieval.gate_features import GateFeature
from recollect.retrieval.reranker_gate import GateDecision, GateThresholds


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


LEARNED_GATES: Mapping[str, Mapping[str, GateBand]] = {
    "recollect-small": {
        TINY_RERANKER: GateBand("best_probability", GateThresholds(low=0.0, high=0.962))
    }
}
"""By the names of embedder and reranker. How far scores spread is a property of the embedder, and
what there is to gain one of the reranker, so a gate holds for the two it was learned with."""
