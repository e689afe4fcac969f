"""Stage 6: the pools' findings as one list, in which every memory stands once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ekphory.retrieval.state import SearchState


class MergePools:
    """Keeps each memory once, with its best ranking.

    The pools were scored on one scale, so the list needs no scaling pool by pool, which would let
    the best of an irrelevant pool tie with the best of all.
    """

    number = 6
    name = "merge pools"
    needs = frozenset({"candidates"})
    gives = frozenset({"merged"})

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to merge without candidates."""
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Merge, and note how many candidates each pool gave."""
        snapshot, ordered = state.snapshot, state.candidates.sorted()
        _, first = np.unique(ordered.rows, return_index=True)
        merged = ordered.take(np.sort(first))
        counts = np.bincount(snapshot.pool_codes[merged.rows], minlength=len(snapshot.pool_names))
        named = zip(snapshot.pool_names.tolist(), counts.tolist(), strict=True)
        return replace(
            state, candidates=merged, notes={pool: count for pool, count in named if count}
        )
