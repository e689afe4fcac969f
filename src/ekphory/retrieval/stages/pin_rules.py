"""Stage 15: rules that are pinned come first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ekphory.retrieval.state import SearchState


class PinRules:
    """Moves pinned rules to the front, whatever the query, but never to more than half the hits.

    A rule is a memory of the pool `shared_rules`, found like any other by its relevance. One with
    `{"pinned": true}` in its metadata is found by every search that may see it. Its probability
    stays what it is, so `min_score` may still leave it out.
    """

    number = 15
    name = "pin rules"
    needs = frozenset({"probability"})
    gives = frozenset({"pinned"})

    def __init__(self, *, most: int = 3) -> None:
        self.most = most

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to move without pinned rules."""
        return None if len(state.request.pinned) else "no rule is pinned"

    def run(self, state: SearchState) -> SearchState:
        """Move the first of them to the front, in the order in which they are pinned."""
        candidates = state.candidates
        most = min(self.most, state.request.k // 2)
        present = state.request.pinned[np.isin(state.request.pinned, candidates.rows)][:most]
        places = [int(np.flatnonzero(candidates.rows == row)[0]) for row in present]
        rest = np.setdiff1d(np.arange(len(candidates)), places)
        order = np.array([*places, *rest], np.int64)
        moved = candidates.in_order(order)
        kind = "pins" if places else state.order
        return replace(state, candidates=moved, notes={"pinned": len(places)}, order=kind)
