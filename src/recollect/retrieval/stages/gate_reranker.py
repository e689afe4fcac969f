"""Stage 11: whether the reranker is worth its time for this query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from recollect.retrieval.reranker_gate import (
    LEARNED_THRESHOLDS,
    PUBLISHED_THRESHOLDS,
    GateMode,
    GateThresholds,
    gate_decision,
)
from recollect.retrieval.state import SearchState


class GateReranker:
    """Decides from how far the five largest cosines of the candidates spread.

    Args:
        mode: As in `gate_decision`; `auto` is `hard` with the thresholds learned for the store's
            embedder, and with the published ones, degraded, where none were.
        thresholds: Where `hard` and `soft` see a tie and a clear winner.
        learned: Thresholds by the embedder's name, for `auto`.
    """

    number = 11
    name = "reranker gate"
    needs = frozenset({"cosine"})
    gives = frozenset({"gate"})

    def __init__(
        self,
        *,
        mode: GateMode = "hard",
        thresholds: GateThresholds = PUBLISHED_THRESHOLDS,
        learned: Mapping[str, GateThresholds] = LEARNED_THRESHOLDS,
    ) -> None:
        self.mode = mode
        self.thresholds = thresholds
        self.learned = learned

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to decide without candidates or without a reranker."""
        if state.resources.reranker is None:
            return "no reranker"
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Decide; the candidates stay as they are."""
        cosine = np.sort(state.candidates.scores["cosine"])[::-1].tolist()
        if self.mode != "auto":
            decision = gate_decision(cosine, mode=self.mode, thresholds=self.thresholds)
            return replace(state, gate=decision, notes={"decision": decision.reason})
        embedder = state.resources.embedder.identity.name
        own = self.learned.get(embedder)
        decision = gate_decision(cosine, mode="hard", thresholds=own or PUBLISHED_THRESHOLDS)
        missing = None if own else f"no gate was learned for {embedder}: the published one is used"
        notes = {"decision": decision.reason}
        return replace(state, gate=decision, notes=notes, degraded=missing)
