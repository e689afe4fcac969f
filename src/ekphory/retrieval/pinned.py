"""Rules that every search finds: those of the pool `shared_rules` that say so in their metadata."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from ekphory.retrieval.resources import RecordReader
from ekphory.retrieval.snapshot import IntArray, ScopeSnapshot

RULES = "shared_rules"
PINNED = "pinned"
"""Key of the metadata that is true for a pinned rule."""
MOST_RULES = 200
"""Of more rules the most important are looked at, of equally important ones the newest."""
MOST_PINNED = 10
_MOST_KNOWN = 100_000


class PinnedRules:
    """Knows of each rule whether it is pinned, and reads a rule once.

    A stored row never changes, so what is known of its key stays true.
    """

    def __init__(self, read: RecordReader) -> None:
        self._read = read
        self._known: dict[int, bool] = {}
        self._guard = threading.Lock()

    def rows(self, snapshot: ScopeSnapshot, visible: NDArray[np.bool_]) -> IntArray:
        """Give the pinned rules among the visible rows, at most ten, the most important first."""
        pool = np.flatnonzero(snapshot.pool_names == RULES)
        if not len(pool):
            return np.empty(0, np.int64)
        columns = snapshot.columns
        rules = np.flatnonzero((snapshot.pool_codes == pool[0]) & visible)
        order = np.lexsort((-rules, -columns.at[rules], -columns.importance[rules]))
        rules = rules[order][:MOST_RULES]
        pinned = np.array(self._pinned(columns.key[rules].tolist()), bool)
        return np.asarray(rules[pinned][:MOST_PINNED], np.int64)

    def _pinned(self, keys: list[int]) -> list[bool]:
        with self._guard:
            unknown = [key for key in keys if key not in self._known]
            if unknown:
                if len(self._known) > _MOST_KNOWN:
                    self._known.clear()
                    unknown = keys
                for key, record in self._read(unknown).items():
                    self._known[key] = record.metadata.get(PINNED) is True
            return [self._known.get(key, False) for key in keys]
