"""Stage 11: whether the reranker is worth its time for this query."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ekphory.retrieval.gate_features import gate_feature
from ekphory.retrieval.learned_gates import FittedGate, GateBand, read_gate
from ekphory.retrieval.reranker_gate import (
    PUBLISHED_THRESHOLDS,
    GateDecision,
    GateMode,
    GateThresholds,
    gate_decision,
)
from ekphory.retrieval.state import SearchState


class GateReranker:
    """Decides from the first stage's scores; as published, from how far the best cosines spread.

    Args:
        mode: As in `gate_decision`; `auto` takes the gate that was learned for the store's embedder
            and the reranker, and is left out where none was.
        thresholds: Where `hard` and `soft` see a tie and a clear winner.
        learned: The gate of `auto`; None for the package's own, which is read when it is needed.
    """

    number = 11
    name = "reranker gate"
    gives = frozenset({"gate"})

    def __init__(
        self,
        *,
        mode: GateMode = "hard",
        thresholds: GateThresholds = PUBLISHED_THRESHOLDS,
        learned: FittedGate | None = None,
    ) -> None:
        self.mode = mode
        # What a learned gate reads is known when it runs: a search by words alone has no cosine.
        self.needs = frozenset({"probability" if mode == "auto" else "cosine"})
        self.thresholds = thresholds
        self.learned = learned

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to decide without candidates, a reranker, or for `auto` a learned gate."""
        reranker = state.resources.reranker
        if reranker is None:
            return "no reranker"
        if self.mode == "auto" and self._learned(state) is None:
            embedder = state.resources.embedder.identity.name
            return f"no gate was learned for {reranker.name} with {embedder}"
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Decide; the candidates stay as they are."""
        decision = self._decision(state)
        return replace(state, gate=decision, notes={"decision": decision.reason})

    def _decision(self, state: SearchState) -> GateDecision:
        scores = state.candidates.scores
        learned = self._learned(state)
        if learned is not None:
            return learned.decide(gate_feature(learned.feature, scores))
        cosine = np.sort(scores["cosine"])[::-1].tolist()
        mode = "off" if self.mode == "auto" else self.mode
        return gate_decision(cosine, mode=mode, thresholds=self.thresholds)

    def _learned(self, state: SearchState) -> GateBand | None:
        """Return the gate for the models of this search; None where it has none.

        Raises:
            ModelError: The gate was learned with another revision of one of them.
        """
        reranker = state.resources.reranker
        if self.mode != "auto" or reranker is None:
            return None
        fitted = self.learned or read_gate()
        return fitted.band_for(state.resources.embedder.identity, reranker)
