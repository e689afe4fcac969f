"""The reference store: everything in a dict, nothing on disk. It defines what the others mean."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ekphory.filters.lance_sql import matches
from ekphory.filters.tree import And, Filter
from ekphory.scope import get_owner, owner_name
from ekphory.store.blocks import columns_of, vectors_of
from ekphory.store.protocol import (
    CURRENT,
    NEVER,
    Growth,
    IntArray,
    KeyedVectors,
    Order,
    Precision,
    Presence,
    ScopeColumns,
    StoredMemory,
    StoreHealth,
    StoreIdentity,
    Verification,
)
from ekphory.types import MemoryRecord, Progress, encode_metadata, now_utc, to_microseconds


@dataclass(frozen=True, slots=True)
class ListedRecords:
    """A block of memories; see `RecordBlock`."""

    keys: IntArray
    records: tuple[MemoryRecord, ...]

    @property
    def nbytes(self) -> int:
        """The keys alone: the records are the store's own."""
        return self.keys.nbytes

    def at(self, places: IntArray) -> list[MemoryRecord]:
        """Return the memories at these places, in order."""
        return [self.records[place] for place in places]

    def without(self, keys: IntArray) -> ListedRecords:
        """Return the block without the memories that have these keys."""
        kept = np.isin(self.keys, keys, invert=True)
        records = tuple(
            record for record, is_kept in zip(self.records, kept, strict=True) if is_kept
        )
        return ListedRecords(self.keys[kept], records)


class InMemoryStore:
    """Keeps rows in a dict by key; the semantics that `StoreContract` holds every store to."""

    def __init__(self, identity: StoreIdentity) -> None:
        self._identity = identity
        self._rows: dict[int, StoredMemory] = {}
        self._version = 1
        self._lock = threading.RLock()

    @property
    def identity(self) -> StoreIdentity:
        """What the store was made with."""
        return self._identity

    def version(self) -> int:
        """Return the number of commits so far."""
        return self._version

    def append(self, memories: Sequence[StoredMemory]) -> None:
        """Write new rows."""
        with self._lock:
            self._rows.update({memory.key: memory for memory in memories})
            self._version += 1

    def supersede(self, key: int, history: MemoryRecord, successor: StoredMemory) -> None:
        """Refile one row as history and write its successor."""
        with self._lock:
            self._rows[key] = replace(self._rows[key], record=history)
            self.append([successor])

    def delete(self, keys: Sequence[int]) -> None:
        """Drop these rows."""
        with self._lock:
            for key in keys:
                self._rows.pop(key, None)
            self._version += 1

    def purge(self) -> None:
        """Nothing is left behind by a deletion in memory."""

    def select(
        self, where: Filter, *, order: Order, limit: int | None = None, offset: int = 0
    ) -> list[MemoryRecord]:
        """Read whole memories."""
        rows = self._matching(where)
        if order == "newest":
            rows.sort(key=lambda memory: (memory.record.at, memory.key), reverse=True)
        elif order == "oldest":
            rows.sort(key=lambda memory: (memory.record.at, memory.key))
        end = None if limit is None else offset + limit
        return [memory.record for memory in rows[offset:end]]

    def fetch(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Read whole memories by key."""
        with self._lock:
            return {key: self._rows[key].record for key in keys if key in self._rows}

    def present(
        self, where: Filter, ids: Sequence[str], fingerprints: Sequence[str]
    ) -> list[Presence]:
        """Return which of these are stored among the matching memories."""
        return [
            Presence(
                memory.key,
                memory.record.superseded_by or memory.record.id,
                memory.fingerprint,
                get_owner(memory.record),
                to_microseconds(memory.record.expires_at) if memory.record.expires_at else NEVER,
                is_history=memory.record.superseded_by is not None,
            )
            for memory in self._matching(where)
            if (memory.record.superseded_by is None and memory.record.id in ids)
            or (memory.fingerprint is not None and memory.fingerprint in fingerprints)
        ]

    def keys(self, where: Filter) -> IntArray:
        """Return the keys of the matching memories."""
        return np.array([memory.key for memory in self._matching(where)], np.int64)

    def count(self, where: Filter) -> int:
        """Return how many memories match."""
        return len(self._matching(where))

    def growth_since(self, version: int) -> Growth | None:  # noqa: ARG002  as the protocol has it
        """Return None: reading is as cheap."""
        return None

    def scan(self, where: Filter, *, after_key: int = 0) -> ScopeColumns:
        """Read the ranking columns."""
        return columns_of(self._current(where, after_key))

    def scan_fields(self, where: Filter, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read some fields of the current matching memories."""
        rows = self._current(where, 0)
        found = {"key": np.array([memory.key for memory in rows], np.int64)}
        for name in names:
            values = [_plain(getattr(memory.record, name)) for memory in rows]
            is_text = any(isinstance(value, str) for value in values)
            found[name] = np.array(values, object if is_text else None)
        return found

    def scan_vectors(
        self, where: Filter, *, after_key: int = 0, precision: Precision = np.float32
    ) -> KeyedVectors:
        """Read the vectors of the current matching memories."""
        found = self._vectors(self._current(where, after_key))
        return KeyedVectors(found.keys, found.vectors.astype(precision))

    def scan_records(self, where: Filter, *, after_key: int = 0) -> ListedRecords:
        """Read the current matching memories, whole."""
        rows = self._current(where, after_key)
        keys = np.array([memory.key for memory in rows], np.int64)
        return ListedRecords(keys, tuple(memory.record for memory in rows))

    def scan_whole(self, where: Filter, *, room: int) -> None:
        """Return nothing: reading at once saves nothing."""

    def vectors_of(self, keys: Sequence[int]) -> KeyedVectors:
        """Read the vectors of some memories."""
        with self._lock:
            return self._vectors([self._rows[key] for key in keys if key in self._rows])

    def nearest(self, where: Filter, vector: NDArray[np.float32], *, limit: int) -> IntArray:
        """Find the rows with the largest dot product, exactly."""
        found = self._vectors(self._matching(where))
        scores = np.asarray(found.vectors @ vector, np.float32)
        order = np.argsort(-scores, kind="stable")[:limit]
        return found.keys[order]

    def note_newest(self) -> None:
        """Nothing outlasts the process."""

    def upkeep_is_due(self) -> bool:
        """Return False: nothing gathers."""
        return False

    def maintain(self) -> None:
        """Nothing to merge."""

    def tidy(self) -> None:
        """Nothing to merge."""

    def index_is_due(self) -> bool:
        """Return False: search is exact."""
        return False

    def build_index(self) -> None:
        """Nothing to index."""

    def repair(self) -> None:
        """Nothing to mend."""

    def health(self) -> StoreHealth:
        """Count what there is."""
        rows = self._matching(And(()))
        current = [memory for memory in rows if memory.record.superseded_by is None]
        return StoreHealth(
            memories=len(current),
            history=len(rows) - len(current),
            vectors=sum(len(memory.vectors) for memory in rows),
            fragments=1,
            small_fragments=0,
            versions=1,
            bytes=None,
            vector_index_rows=None,
            orphaned_scopes=_list_orphaned_owners([memory.record for memory in rows]),
        )

    def verify(self, on_progress: Progress) -> Verification:
        """Count the rows: what is in memory is as it was written."""
        rows = sum(len(memory.vectors) for memory in self._matching(And(())))
        on_progress(rows, rows)
        return Verification(rows, unverified=0, damage=())

    def close(self) -> None:
        """Forget everything."""
        self._rows.clear()

    def _matching(self, where: Filter) -> list[StoredMemory]:
        with self._lock:
            rows = sorted(self._rows.values(), key=lambda memory: memory.key)
            return [memory for memory in rows if matches(where, memory.record)]

    def _current(self, where: Filter, after_key: int) -> list[StoredMemory]:
        return [m for m in self._matching(And((where, CURRENT))) if m.key > after_key]

    def _vectors(self, rows: list[StoredMemory]) -> KeyedVectors:
        return vectors_of(rows, dimension=self._identity.embedder.dimension)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return to_microseconds(value)
    if isinstance(value, Mapping):
        return encode_metadata(value)
    return "" if value is None else value


def _list_orphaned_owners(records: Iterable[MemoryRecord]) -> tuple[str, ...]:
    """Name the owners that are left with nothing but history and expired memories."""
    now = now_utc()
    owners: set[str] = set()
    alive: set[str] = set()
    for record in records:
        name = owner_name(get_owner(record))
        owners.add(name)
        if record.superseded_by is None and (not record.expires_at or record.expires_at > now):
            alive.add(name)
    return tuple(sorted(owners - alive))
