"""Whole memories by key, kept for a while: a current row never changes, it only leaves the view."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace

from ekphory.store.store import Store
from ekphory.types import MemoryRecord

CACHED_RECORDS = 20_000


class RecordCache:
    """Reads current memories through a bounded cache, the least recently used going first.

    Only keys from a scope's snapshot may be asked for: the cache itself knows no scope.
    """

    def __init__(self, store: Store, *, size: int = CACHED_RECORDS) -> None:
        self._store = store
        self._size = size
        self._records: OrderedDict[int, MemoryRecord] = OrderedDict()
        self._guard = threading.Lock()

    def fetch(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Give the records of these keys; one that is gone is left out."""
        with self._guard:
            found = {key: self._records[key] for key in keys if key in self._records}
            for key in found:
                self._records.move_to_end(key)
        missing = [key for key in keys if key not in found]
        if missing:
            fetched = self._store.fetch(missing)
            read = {key: _as_scanned(record) for key, record in fetched.items()}
            found |= read
            self._remember(read)
        return found

    def _remember(self, read: dict[int, MemoryRecord]) -> None:
        with self._guard:
            self._records |= read
            while len(self._records) > self._size:
                self._records.popitem(last=False)


def _as_scanned(record: MemoryRecord) -> MemoryRecord:
    """Give a record that was refiled as history since its scope was scanned its own id again."""
    if record.superseded_by is None:
        return record
    return replace(record, id=record.superseded_by, superseded_by=None)
