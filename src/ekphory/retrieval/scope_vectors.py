"""Vectors of one large scope by key, in half precision: scoring a thousand reads no disk."""

from __future__ import annotations

import numpy as np

from ekphory.filters.tree import Filter
from ekphory.store.scope_blocks import ScopeBlocks
from ekphory.store.store import IntArray, KeyedVectors, Store


class ScopeVectors:
    """Reads vectors of one scope, from its second read on out of memory where they have room.

    A product of half precision vectors is off by some 0.0002. What was written after the load
    comes from the store, until that is much.

    Args:
        store: Where they are read.
        scope: The condition on them.
        room: Bytes that they may take in memory.
    """

    def __init__(self, store: Store, scope: Filter, *, room: int) -> None:
        self._store = store
        self._room = room
        self._blocks: ScopeBlocks[KeyedVectors] = ScopeBlocks(
            lambda last: store.scan_vectors(scope, after_key=last, precision=np.float16)
        )

    @property
    def nbytes(self) -> int:
        """Memory that is taken."""
        return self._blocks.nbytes

    @property
    def resident(self) -> bool:
        """Whether reading costs no access to the store, but for what is new."""
        return self._blocks.nbytes > 0

    def prepare(self, windows: int, dimension: int) -> None:
        """Load what is not there yet, if it has room and this is not the first time.

        Args:
            windows: About how many vectors the scope has.
            dimension: Of a vector.
        """
        if windows * dimension * np.float16().nbytes <= self._room:
            self._blocks.prepare()

    def read(self, keys: IntArray) -> KeyedVectors:
        """Give the vectors of these keys, the windows of a memory in the order of its text."""
        parts = [_chosen(block, keys) for block in self._blocks.holding(keys)]
        missing = np.unique(keys)
        for part in parts:
            missing = np.setdiff1d(missing, part.keys)
        if len(missing) or not parts:
            parts.append(self._store.vectors_of(missing.tolist()))
        return KeyedVectors(
            np.concatenate([part.keys for part in parts]),
            np.concatenate([part.vectors for part in parts]),
        )


def _chosen(block: KeyedVectors, keys: IntArray) -> KeyedVectors:
    """Give the windows of these keys out of a block whose keys ascend."""
    wanted = np.unique(keys)
    starts = np.searchsorted(block.keys, wanted, side="left")
    counts = np.searchsorted(block.keys, wanted, side="right") - starts
    before = np.cumsum(counts) - counts
    places = np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
    return KeyedVectors(block.keys[places], block.vectors[places].astype(np.float32))
