"""Whole memories of one scope, held as columns: ten of them cost a fraction of a read from disk."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from recollect.filters.tree import Filter
from recollect.store.record_cache import RecordCache
from recollect.store.store import IntArray, RecordBlock, Store
from recollect.types import MemoryRecord

# A process that searches once, such as a command, does not wait for what it will not use.
_READS_BEFORE_LOADING = 1
_MOST_MISSING = 100


class ScopeRecords:
    """Reads memories of one scope by key, from its second read on out of memory.

    A current row never changes, it only leaves the view, so what is held never gets stale. Rows
    written after the load come through the cache until there are many.
    """

    def __init__(self, store: Store, scope: Filter, cache: RecordCache) -> None:
        self._store = store
        self._scope = scope
        self._cache = cache
        self._reads = 0
        self._blocks: list[RecordBlock] = []
        self._guard = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Memory that the held columns take."""
        return sum(block.nbytes for block in self._blocks)

    def fetch(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Give the records of these keys; one that is gone is left out.

        Only keys from this scope's snapshot may be asked for.
        """
        with self._guard:
            self._reads += 1
            if self._reads == _READS_BEFORE_LOADING + 1:
                self._load()
            found = self._held(keys)
            if self._blocks and len(keys) - len(found) > _MOST_MISSING:
                self._load()
                found = self._held(keys)
        missing = [key for key in keys if key not in found]
        return found | self._cache.fetch(missing) if missing else found

    def _load(self) -> None:
        last = max((int(block.keys[-1]) for block in self._blocks), default=0)
        block = self._store.scan_records(self._scope, after_key=last)
        if len(block.keys):
            self._blocks.append(block)

    def _held(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        wanted = np.array(keys, np.int64)
        found: dict[int, MemoryRecord] = {}
        for block in self._blocks:
            places = _places(block.keys, wanted)
            held = wanted[places >= 0].tolist()
            if held:
                found |= zip(held, block.at(places[places >= 0]), strict=True)
        return found


def _places(sorted_keys: IntArray, wanted: IntArray) -> IntArray:
    places = np.minimum(np.searchsorted(sorted_keys, wanted), len(sorted_keys) - 1)
    return np.where(sorted_keys[places] == wanted, places, -1)
