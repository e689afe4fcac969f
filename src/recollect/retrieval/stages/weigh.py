"""Stage 8: pools and importance lift or lower a memory, within bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from recollect.retrieval.state import SearchState

PUBLISHED_POOL_WEIGHTS: Mapping[str, float] = {
    "agent_memory": 1.0,
    "agent_mistakes": 1.6,
    "shared_mistakes": 1.6,
    "shared_knowledge": 0.8,
    "shared_rules": 1.0,
}
"""The weights that Memory-Spark publishes (kleinpanic/memory-spark, landing page)."""


class Weigh:
    """Multiplies the ranking by a pool's weight and by importance, each at most ± `bound`.

    Importance .5 is neutral. Only the order changes, never a hit's probability.
    """

    number = 8
    name = "weigh"
    needs = frozenset({"probability"})
    gives = frozenset({"weighted"})

    def __init__(
        self,
        *,
        pool_weights: Mapping[str, float] = PUBLISHED_POOL_WEIGHTS,
        bound: float = 0.1,
    ) -> None:
        self.pool_weights = dict(pool_weights)
        self.bound = bound

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to weigh without candidates."""
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Weigh and order anew."""
        candidates, columns = state.candidates, state.snapshot.columns
        weights = [self.pool_weights.get(str(pool), 1.0) for pool in columns.pool[candidates.rows]]
        pool = np.clip(np.array(weights, np.float32), 1 - self.bound, 1 + self.bound)
        importance = 1 + self.bound * (2 * columns.importance[candidates.rows] - 1)
        return replace(
            state,
            candidates=candidates.ranked(candidates.ranking * pool * importance),
            notes={"bound": self.bound},
        )
