"""What is held of one scope in memory: loaded at the second use, added to when much is new."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import numpy as np

from ekphory.store.store import IntArray

# A process that searches once, such as a command, does not wait for what it will not use.
_USES_BEFORE_LOADING = 1
_MOST_NEWER = 100


class KeyedBlock(Protocol):
    """Rows held as columns."""

    @property
    def keys(self) -> IntArray:
        """Keys of the rows, ascending."""
        ...

    @property
    def nbytes(self) -> int:
        """Memory that they take, in bytes."""
        ...


BlockT = TypeVar("BlockT", bound=KeyedBlock)


class ScopeBlocks(Generic[BlockT]):
    """Blocks of one scope's rows, each with later keys than the one before.

    A current row never changes, it only leaves the view, so a block never gets stale.

    Args:
        scan: Reads the scope's rows after a key.
    """

    def __init__(self, scan: Callable[[int], BlockT]) -> None:
        self._scan = scan
        self._uses = 0
        self._blocks: tuple[BlockT, ...] = ()
        self._guard = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Memory that all blocks take, in bytes."""
        return sum(block.nbytes for block in self._blocks)

    def prepare(self) -> None:
        """Count a use, and load the scope at the second."""
        with self._guard:
            self._uses += 1
            if self._uses == _USES_BEFORE_LOADING + 1:
                self._load()

    def holding(self, keys: IntArray) -> tuple[BlockT, ...]:
        """Give the blocks; where many of these keys are newer than all of them, with one more."""
        with self._guard:
            if self._blocks and np.count_nonzero(keys > self._last_key()) > _MOST_NEWER:
                self._load()
            return self._blocks

    def _load(self) -> None:
        block = self._scan(self._last_key())
        if len(block.keys):
            self._blocks += (block,)

    def _last_key(self) -> int:
        return int(self._blocks[-1].keys[-1]) if self._blocks else 0
