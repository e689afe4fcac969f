"""Whole memories of one scope, held as columns: ten of them cost a fraction of a read from disk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ekphory.filters.tree import Filter
from ekphory.store.record_cache import RecordCache
from ekphory.store.scope_blocks import ScopeBlocks
from ekphory.store.store import IntArray, RecordBlock, Store
from ekphory.types import MemoryRecord


class ScopeRecords:
    """Reads memories of one scope by key, from its second read on out of memory.

    Rows written after the load come through the cache until there are many.
    """

    def __init__(self, store: Store, scope: Filter, cache: RecordCache) -> None:
        self._cache = cache
        self._blocks: ScopeBlocks[RecordBlock] = ScopeBlocks(
            lambda last: store.scan_records(scope, after_key=last)
        )

    @property
    def nbytes(self) -> int:
        """Memory that the held columns take."""
        return self._blocks.nbytes

    def fetch(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Give the records of these keys; one that is gone is left out.

        Only keys from this scope's snapshot may be asked for.
        """
        self._blocks.prepare()
        wanted = np.array(keys, np.int64)
        found: dict[int, MemoryRecord] = {}
        for block in self._blocks.holding(wanted):
            places = _places(block.keys, wanted)
            held = wanted[places >= 0].tolist()
            if held:
                found |= zip(held, block.at(places[places >= 0]), strict=True)
        missing = [key for key in keys if key not in found]
        return found | self._cache.fetch(missing) if missing else found


def _places(sorted_keys: IntArray, wanted: IntArray) -> IntArray:
    places = np.minimum(np.searchsorted(sorted_keys, wanted), len(sorted_keys) - 1)
    return np.where(sorted_keys[places] == wanted, places, -1)
