"""What this process wrote last, so that what it holds of a scope can grow without a read."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ekphory.moments import to_microseconds
from ekphory.store.store import NEVER, Growth, KeyedVectors, ScopeColumns, StoredMemory
from ekphory.types import MemoryRecord

_MOST_MEMORIES = 1_024


@dataclass(frozen=True, slots=True)
class _Commit:
    before: int
    after: int
    memories: tuple[StoredMemory, ...]


class RecentWrites:
    """Remembers the last commits of this process, for as long as nobody else made one between.

    Safe for several threads.
    """

    def __init__(self) -> None:
        self._commits: deque[_Commit] = deque()
        self._held = 0
        self._guard = threading.Lock()

    def note(self, memories: Sequence[StoredMemory], *, before: int, after: int) -> None:
        """Take in a commit that added memories."""
        with self._guard:
            follows = not self._commits or self._commits[-1].after == before
            # Only then did nobody else write in between.
            if after != before + 1 or not follows:
                self._forget()
                return
            self._commits.append(_Commit(before, after, tuple(memories)))
            self._held += len(memories)
            while self._held > _MOST_MEMORIES or len(self._commits) > _MOST_MEMORIES:
                self._held -= len(self._commits.popleft().memories)

    def note_rearranged(self, *, before: int, after: int) -> None:
        """Take in commits that moved memories, while the store was locked, and changed none."""
        with self._guard:
            if self._commits and self._commits[-1].after == before:
                self._commits.append(_Commit(before, after, ()))
            else:
                self._forget()

    def forget(self) -> None:
        """Forget all: something was changed that cannot be told as an addition."""
        with self._guard:
            self._forget()

    def since(self, version: int, *, newest: int) -> Growth | None:
        """Return what was added after `version` up to `newest`; None where that is not known."""
        with self._guard:
            if not self._commits or self._commits[-1].after != newest:
                return None
            if version < self._commits[0].before:
                return None
            added = [each.memories for each in self._commits if each.before >= version]
        return Growth(newest, tuple(memory for memories in added for memory in memories))

    def records(self, keys: Sequence[int], *, newest: int) -> dict[int, MemoryRecord]:
        """Return those of these memories that were added of late; none where others wrote since."""
        with self._guard:
            if not self._commits or self._commits[-1].after != newest:
                return {}
            wanted = set(keys)
            return {
                memory.key: memory.record
                for commit in self._commits
                for memory in commit.memories
                if memory.key in wanted
            }

    def _forget(self) -> None:
        self._commits.clear()
        self._held = 0


def columns_of(memories: Sequence[StoredMemory]) -> ScopeColumns:
    """Return the ranking columns of these memories, which are in the order of keys."""
    records = [memory.record for memory in memories]
    terms = [memory.terms for memory in memories]
    return ScopeColumns(
        key=np.array([memory.key for memory in memories], np.int64),
        thread=np.array([memory.thread for memory in memories], np.int64),
        sequence=np.array([record.sequence or 0 for record in records], np.int64),
        at=np.array([to_microseconds(record.at) for record in records], np.int64),
        expires_at=np.array(
            [to_microseconds(r.expires_at) if r.expires_at else NEVER for r in records],
            np.int64,
        ),
        importance=np.array([record.importance for record in records], np.float32),
        importance_given=np.array(
            ["importance" not in record.predicted for record in records], np.bool_
        ),
        pool=np.array([record.pool for record in records], np.str_),
        type=np.array([record.type for record in records], np.str_),
        terms=np.concatenate([np.empty(0, np.uint32), *terms]),
        term_counts=np.array([len(row) for row in terms], np.int32),
    )


def vectors_of(memories: Sequence[StoredMemory], *, dimension: int) -> KeyedVectors:
    """Return the vectors of these memories."""
    keys = [key for memory in memories for key in [memory.key] * len(memory.vectors)]
    empty = np.empty((0, dimension), np.float32)
    vectors = np.concatenate([empty, *(memory.vectors for memory in memories)])
    return KeyedVectors(np.array(keys, np.int64), vectors)
