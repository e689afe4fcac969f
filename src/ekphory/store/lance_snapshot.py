"""One state of a Lance store, read while others write: nothing of it changes under the reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from ekphory.errors import StoreError
from ekphory.filters.lance_sql import to_lance_sql
from ekphory.filters.tree import And, Filter, IsNull, Not
from ekphory.filters.tree import Field as FilterField
from ekphory.store import lance_schema
from ekphory.store.connection import connect
from ekphory.store.lance import TABLE
from ekphory.store.lance_errors import told
from ekphory.store.owner import OWNER_FIELDS
from ekphory.store.store import CURRENT, IntArray, StoreIdentity
from ekphory.types import MemoryRecord

Result = TypeVar("Result")
_ALL_ROWS = 2**31 - 1
_ROWS_READ = 8192
_SUCCESSOR_COLUMNS = ["superseded_by", "session", *OWNER_FIELDS]
_HISTORY: Filter = Not(IsNull(FilterField("superseded_by")))


class StateGone(StoreError):
    """The state that was being read was purged, or merged away long after it was current."""


@dataclass(frozen=True, slots=True)
class KeptMemory:
    """One memory as the store keeps it, without its vectors.

    Attributes:
        key: Number of its row.
        record: The memory, or an earlier version of one.
        fingerprint: What identifies it where the caller gave no id; None where one was given.
    """

    key: int
    record: MemoryRecord
    fingerprint: str | None


class LanceSnapshot:
    """The newest state of a store at the moment of opening, and no later one.

    It holds no lock, so others go on writing. Its files stay for a minute after they were
    replaced, unless the store is purged or repaired; then reading raises `StateGone`.
    """

    def __init__(self, uri: str) -> None:
        """Open the newest state of the store at a Lance URI.

        Raises:
            StoreError: There is no store, or it was not written by ekphory.
        """
        self._uri = uri
        with told("open", uri):
            self._table = connect(uri).open_table(TABLE)
            self.version = int(self._table.version)
            self._table.checkout(self.version)
        self.identity: StoreIdentity = lance_schema.read_identity(self._table.schema, where=uri)

    def count(self, where: Filter) -> int:
        """How many memories match, history included."""
        with self._told():
            return int(self._table.count_rows(f"passage = 0 AND ({to_lance_sql(where)})"))

    def fragments(self) -> int:
        """How many data files there are at the least."""
        with self._told():
            statistics: Any = self._table.stats()
        return int(statistics["fragment_stats"]["num_fragments"])

    def index_folders(self) -> set[str]:
        """Name the folders in which its indexes are."""
        with self._told():
            found = [index.index_uuid for index in self._table.list_indices()]
        return {str(folder) for folder in found if folder is not None}

    def rows(self, where: Filter) -> IntArray:
        """Say where the current matching memories are, in the order in which they were written."""
        parts = [
            np.stack([lance_schema.integers(part[name], missing=0) for name in ("key", "_rowid")])
            for part in self._streamed(And((where, CURRENT)), ["key"])
        ]
        keys, rows = np.concatenate([np.empty((2, 0), np.int64), *parts], axis=1)
        return np.asarray(rows[np.argsort(keys)])

    def take(self, rows: IntArray) -> list[KeptMemory]:
        """Read the memories at these places, in the order in which they were written."""
        if len(rows) == 0:
            return []
        columns = [*lance_schema.keyed_record_columns(self.identity), "fingerprint"]
        with self._told():
            taken = self._table.take_row_ids(rows.tolist()).select(columns).to_arrow()
        found = taken.sort_by("key")
        return [
            KeptMemory(key, record, fingerprint)
            for key, record, fingerprint in zip(
                found["key"].to_pylist(),
                lance_schema.to_records(found),
                found["fingerprint"].to_pylist(),
                strict=True,
            )
        ]

    def successors(self, where: Filter) -> Iterator[tuple[int, tuple[str | None, ...]]]:
        """Say where every matching earlier version is, and which memory it is a version of.

        Yields:
            Its place; then the id of the memory, the session, and the owner's fields.
        """
        for part in self._streamed(And((where, _HISTORY)), _SUCCESSOR_COLUMNS):
            columns = [part[name].to_pylist() for name in ("_rowid", *_SUCCESSOR_COLUMNS)]
            for row, *successor in zip(*columns, strict=True):
                yield row, tuple(successor)

    def _streamed(self, where: Filter, columns: list[str]) -> Iterator[pa.Table]:
        """Read some columns and `_rowid` of the matching memories, piece by piece."""
        condition = f"passage = 0 AND ({to_lance_sql(where)})"
        with self._told():
            query = self._table.search().where(condition, prefilter=True).limit(_ALL_ROWS)
            for batch in query.select(columns).with_row_id(True).to_batches(_ROWS_READ):
                yield pa.Table.from_batches([batch])

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            with told("read", self._uri):
                yield
        except StoreError as error:
            if "not found" not in str(error).lower():
                raise
            raise StateGone(
                f"{self._uri}: the store was purged or repaired while version {self.version} "
                "of it was being read. Run the command again."
            ) from error


def newest_state(uri: str, read: Callable[[LanceSnapshot], Result], *, attempts: int) -> Result:
    """Read the newest state, and a newer one where that is purged meanwhile.

    Raises:
        StateGone: That happened at every attempt.
    """
    for _ in range(attempts - 1):
        try:
            return read(LanceSnapshot(uri))
        except StateGone:
            continue
    return read(LanceSnapshot(uri))
