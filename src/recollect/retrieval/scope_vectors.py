"""Vectors of one large scope by key, in half precision: scoring a thousand reads no disk."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from recollect.filters.tree import Filter
from recollect.store.store import KeyedVectors, Store

IntArray = NDArray[np.int64]

# A process that searches once, such as a command, does not wait for what it will not use.
_READS_BEFORE_LOADING = 1
_MOST_MISSING = 100


class ScopeVectors:
    """Reads vectors of one scope, from its second read on out of memory where they have room.

    A product of half precision vectors is off by some 0.0002. A memory's vectors never change,
    so what is held never gets stale; what was written after the load comes from the store, until
    that is much.

    Args:
        store: Where they are read.
        scope: The condition on them.
        room: Bytes that they may take in memory.
    """

    def __init__(self, store: Store, scope: Filter, *, room: int) -> None:
        self._store = store
        self._scope = scope
        self._room = room
        self._reads = 0
        self._blocks: list[KeyedVectors] = []
        self._guard = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Memory that is taken."""
        return sum(block.keys.nbytes + block.vectors.nbytes for block in self._blocks)

    @property
    def resident(self) -> bool:
        """Whether reading costs no access to the store, but for what is new."""
        return bool(self._blocks)

    def prepare(self, windows: int, dimension: int) -> None:
        """Load what is not there yet, if it has room and this is not the first time.

        Args:
            windows: About how many vectors the scope has.
            dimension: Of a vector.
        """
        with self._guard:
            self._reads += 1
            fits = windows * dimension * np.float16().nbytes <= self._room
            if fits and self._reads > _READS_BEFORE_LOADING and not self._blocks:
                self._load()

    def read(self, keys: IntArray) -> KeyedVectors:
        """Give the vectors of these keys, the windows of a memory in the order of its text."""
        with self._guard:
            found = self._held(keys)
            missing = np.setdiff1d(keys, found.keys)
            if self._blocks and len(missing) > _MOST_MISSING:
                self._load()
                found = self._held(keys)
                missing = np.setdiff1d(keys, found.keys)
        if len(missing) == 0:
            return found
        stored = self._store.vectors_of(missing.tolist())
        return KeyedVectors(
            np.concatenate([found.keys, stored.keys]),
            np.concatenate([found.vectors, stored.vectors]) if len(found.keys) else stored.vectors,
        )

    def _load(self) -> None:
        last = max((int(block.keys[-1]) for block in self._blocks), default=0)
        block = self._store.scan_vectors(self._scope, after_key=last, precision=np.float16)
        if len(block.keys):
            self._blocks.append(block)

    def _held(self, keys: IntArray) -> KeyedVectors:
        parts = [_chosen(block, keys) for block in self._blocks]
        if not parts:
            return KeyedVectors(np.empty(0, np.int64), np.empty((0, 0), np.float32))
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
