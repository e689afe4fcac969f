"""Reading rows by their place: a take by row id costs the same however many files there are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from ekphory.store import lance_schema
from ekphory.store.lance_rows import UNKNOWN, RowIds
from ekphory.store.lance_vectors import keyed_vectors, no_vectors
from ekphory.store.store import IntArray, KeyedVectors, StoreIdentity
from ekphory.types import MemoryRecord

Take = Callable[[list[int], list[str]], pa.Table]
"""Reads some columns of the rows with these row ids."""

# Beyond this many rows one scan is cheaper than that many takes.
_MOST_TAKEN = 2000


class LanceTakes:
    """Takes memories whose row ids a scan has shown; the others are left to a scan."""

    def __init__(self, take: Take, identity: StoreIdentity) -> None:
        self._take = take
        self._dimension = identity.embedder.dimension
        self._record_columns = lance_schema.keyed_record_columns(identity)
        self._first_windows = RowIds()
        self._only_windows = RowIds()

    def note(self, scanned: pa.Table) -> None:
        """Remember where the first windows of memories are: columns key, windows and _rowid."""
        keys = lance_schema.integers(scanned["key"], missing=0)
        rows = lance_schema.integers(scanned["_rowid"].cast(pa.int64()), missing=UNKNOWN)
        self._first_windows.note(keys, rows)
        whole = lance_schema.integers(scanned["windows"], missing=0) == 1
        self._only_windows.note(keys[whole], rows[whole])

    def records(self, keys: IntArray) -> dict[int, MemoryRecord]:
        """Read memories whose place is known; some may be gone, or be others by now."""
        rows = self._first_windows.of(keys)
        known = rows[rows != UNKNOWN]
        if len(keys) > _MOST_TAKEN or len(known) == 0:
            return {}
        table = self._take(known.tolist(), self._record_columns)
        wanted = set(keys.tolist())
        found = lance_schema.to_records_by_key(table)
        return {key: record for key, record in found.items() if key in wanted}

    def vectors(self, keys: IntArray) -> KeyedVectors:
        """Read the vectors of memories that are known to have one."""
        rows = self._only_windows.of(keys)
        known = rows[rows != UNKNOWN]
        if not 0 < len(known) <= _MOST_TAKEN:
            return no_vectors(self._dimension)
        table = self._take(known.tolist(), ["key", "vector"])
        found = keyed_vectors(table, dimension=self._dimension)
        wanted = np.isin(found.keys, keys)
        return KeyedVectors(found.keys[wanted], found.vectors[wanted])

    def keys(self, rows: IntArray) -> IntArray:
        """Give the keys of the memories at these row ids; those that are gone are left out."""
        keys = self._first_windows.keys_of(rows)
        unknown = rows[keys == UNKNOWN]
        if len(unknown) == 0:
            return keys
        table = self._take(unknown.tolist(), ["key"])
        return np.append(keys[keys != UNKNOWN], lance_schema.integers(table["key"], missing=0))

    def clear(self) -> None:
        """Forget all places, after the table was rewritten."""
        self._first_windows.clear()
        self._only_windows.clear()
