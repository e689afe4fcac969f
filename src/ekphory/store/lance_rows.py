"""Where rows lie in a Lance table: a take by row id costs the same however many files there are."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

UNKNOWN = -1


class RowIds:
    """Lance's row id by our key and back, for the rows that were read so far.

    A row id stays valid while files are merged, but not when the table is rewritten, so what is
    read through it must be checked against its key.
    """

    def __init__(self) -> None:
        self._keys = np.empty(0, np.int64)
        self._rows = np.empty(0, np.int64)
        self._ascending_rows = np.empty(0, np.int64)
        self._their_keys = np.empty(0, np.int64)
        self._guard = threading.Lock()

    def note(self, keys: IntArray, rows: IntArray) -> None:
        """Remember the row ids of these keys, in place of older ones."""
        with self._guard:
            merged_keys = np.concatenate([keys, self._keys])
            merged_rows = np.concatenate([rows, self._rows])
            self._keys, first = np.unique(merged_keys, return_index=True)
            self._rows = merged_rows[first]
            by_row = np.argsort(self._rows, kind="stable")
            self._ascending_rows, self._their_keys = self._rows[by_row], self._keys[by_row]

    def of(self, keys: IntArray) -> IntArray:
        """Give the row ids, `UNKNOWN` for keys that were not read yet."""
        with self._guard:
            known_keys, rows = self._keys, self._rows
        if len(known_keys) == 0:
            return np.full(len(keys), UNKNOWN, np.int64)
        places = np.minimum(np.searchsorted(known_keys, keys), len(known_keys) - 1)
        return np.where(known_keys[places] == keys, rows[places], UNKNOWN)

    def keys_of(self, rows: IntArray) -> IntArray:
        """Give the keys that lie at these row ids, `UNKNOWN` for rows that were not read yet."""
        with self._guard:
            known_rows, keys = self._ascending_rows, self._their_keys
        if len(keys) == 0:
            return np.full(len(rows), UNKNOWN, np.int64)
        places = np.minimum(np.searchsorted(known_rows, rows), len(keys) - 1)
        return np.where(known_rows[places] == rows, keys[places], UNKNOWN)

    def clear(self) -> None:
        """Forget all, after the table was rewritten."""
        with self._guard:
            self._keys = self._rows = np.empty(0, np.int64)
            self._ascending_rows = self._their_keys = np.empty(0, np.int64)
