"""Stage 8: where a memory stands, and how much it matters, lift or lower it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ekphory.queries.hints import type_importance_boost
from ekphory.retrieval.candidate_records import read_candidates
from ekphory.retrieval.state import ScoreArray, SearchState
from ekphory.types import MemoryRecord

PUBLISHED_POOL_WEIGHTS: Mapping[str, float] = {
    "agent_memory": 1.0,
    "agent_mistakes": 1.6,
    "shared_mistakes": 1.6,
    "shared_knowledge": 0.8,
    "shared_rules": 1.0,
}
"""The weights that Memory-Spark publishes (kleinpanic/memory-spark, landing page)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginWeights:
    """Weights of where a memory comes from; what is not named weighs 1.

    Attributes:
        sources: By the memory's `source`.
        paths: By its whole `path`.
        path_parts: By a part of its path, in any case, for a path that is not in `paths`; the
            first that fits counts.
    """

    sources: Mapping[str, float] = field(default_factory=dict)
    paths: Mapping[str, float] = field(default_factory=dict)
    path_parts: Mapping[str, float] = field(default_factory=dict)

    def of(self, record: MemoryRecord) -> float:
        """Give the product of source and path weight."""
        weight = self.sources.get(record.source or "", 1.0)
        path = record.path or ""
        if path in self.paths:
            return weight * self.paths[path]
        found = (factor for part, factor in self.path_parts.items() if part.lower() in path.lower())
        return weight * next(found, 1.0)


PUBLISHED_ORIGIN_WEIGHTS = OriginWeights(
    sources={"capture": 1.5, "memory": 1.0, "sessions": 0.5, "reference": 1.0},
    paths={
        "MEMORY.md": 1.4,
        "TOOLS.md": 1.3,
        "AGENTS.md": 1.2,
        "SOUL.md": 1.2,
        "USER.md": 1.3,
        "memory/learnings.md": 0.1,
    },
    path_parts={"mistakes": 1.6, "memory/archive/": 0.4},
)
"""The defaults of Memory-Spark's `applySourceWeighting`."""


class Weigh:
    """Multiplies the ranking by the weights of pool and origin, and by importance.

    Importance .5 is neutral, and so is one that a model predicted. A query that asks for some type
    or for what is important lifts that far more, as `type_importance_boost` says. Only the order
    changes, never a hit's probability.

    Args:
        pool_weights: By pool; one that is not named weighs 1.
        origin_weights: By source and path; None reads no memory for them.
        bound: How far each of the weights may lift or lower; None sets no bound.
        importance: How far a given importance of 1 lifts and one of 0 lowers.
    """

    number = 8
    name = "weigh"
    needs = frozenset({"probability"})
    gives = frozenset({"weighted"})

    def __init__(
        self,
        *,
        pool_weights: Mapping[str, float] = PUBLISHED_POOL_WEIGHTS,
        origin_weights: OriginWeights | None = None,
        bound: float | None = 0.1,
        importance: float = 0.1,
    ) -> None:
        self.pool_weights = dict(pool_weights)
        self.origin_weights = origin_weights
        self.bound = bound
        self.importance = importance

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to weigh without candidates."""
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Weigh and order anew."""
        snapshot, candidates = state.snapshot, state.candidates
        names = snapshot.pool_names.tolist()
        by_pool = self._bounded([self.pool_weights.get(name, 1.0) for name in names])
        origin = None
        if self.origin_weights is not None:
            candidates, records = read_candidates(state)
            origin = self._bounded([self.origin_weights.of(record) for record in records])
        rows = candidates.rows
        importance = snapshot.columns.importance[rows]
        # What a model predicted of a text weighs only where the query asks for it.
        own = np.where(snapshot.columns.importance_given[rows], 2 * importance - 1, 0)
        factors = by_pool[snapshot.pool_codes[rows]] * (1 + self.importance * own)
        if origin is not None:
            factors = factors * origin
        if state.query_class is not None:
            types = snapshot.columns.type[rows]
            factors = factors * type_importance_boost(state.query_class, types, importance)
        boosted = candidates.boosted(np.asarray(factors, np.float32))
        return replace(state, candidates=boosted, notes={"bound": self.bound})

    def _bounded(self, weights: list[float]) -> ScoreArray:
        given = np.array(weights, np.float32)
        if self.bound is None:
            return given
        return np.clip(given, 1 - self.bound, 1 + self.bound)
