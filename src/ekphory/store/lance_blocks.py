"""Blocks of a scope's memories, and all of a scope read at once from object storage."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import pyarrow as pa

from ekphory.store import lance_rows
from ekphory.store.protocol import IntArray, WholeScope
from ekphory.threads import run_after_fork
from ekphory.types import MemoryRecord


@dataclass(frozen=True, slots=True)
class ArrowRecords:
    """A block of memories; see `RecordBlock`.

    Attributes:
        keys: Key of each row, ascending.
        table: The columns that hold whole memories, in the order of the keys.
    """

    keys: IntArray
    table: pa.Table

    @classmethod
    def of(cls, rows: pa.Table) -> ArrowRecords:
        """Sort rows with a column `key` into a block."""
        ordered = rows.sort_by("key").combine_chunks()
        keys = lance_rows.integers(ordered["key"], missing=0)
        return cls(keys, ordered.drop_columns(["key"]))

    @property
    def nbytes(self) -> int:
        """Memory of the columns and keys."""
        return int(self.table.nbytes) + self.keys.nbytes

    def at(self, places: IntArray) -> list[MemoryRecord]:
        """Return the memories at these places, in order."""
        return lance_rows.to_records(self.table.take(pa.array(places)))

    def without(self, keys: IntArray) -> ArrowRecords:
        """Return the block without the memories that have these keys."""
        kept = np.isin(self.keys, keys, invert=True)
        return ArrowRecords(self.keys[kept], self.table.filter(pa.array(kept)))


# All of a scope, read at once: on object storage a request takes as long as megabytes of data.

_READ_WHOLE = 32 * 2**20
"""A table of up to so many bytes is read file by file, each with one request."""
_GAP = 2**20
"""Of a larger one so much is read in vain rather than asked for apart."""
_PACKAGE = "lance"
_SPLIT_BY = ("passage", "vector")
_WIDE = (lance_rows.RECORD, "vector")


_is_usable = True
"""Not in a fork of a process that had loaded the library (decision 0020)."""


def _note_fork() -> None:
    global _is_usable
    _is_usable = _PACKAGE not in sys.modules


run_after_fork(_note_fork)


def can_read_at_once() -> bool:
    """Return whether there is the library that reads files in pieces of a size of ours."""
    return _is_usable and find_spec(_PACKAGE) is not None


def read_at_once(
    table: str, condition: str, columns: Sequence[str], *, version: int, nbytes: int
) -> pa.Table:
    """Read rows of a table on object storage with as few requests as that takes.

    Args:
        table: Its Lance URI.
        condition: Which rows.
        columns: Which columns of theirs; `_rowid` is given too.
        version: Number of the state that is read.
        nbytes: Size of all of its files.
    """
    is_small = nbytes <= _READ_WHOLE
    dataset = importlib.import_module(_PACKAGE).dataset(
        table, version=version, block_size=_READ_WHOLE if is_small else _GAP
    )
    found: pa.Table = dataset.scanner(
        columns=list(columns),
        filter=condition,
        with_row_id=True,
        # What is small is read of all rows, rather than asked for apart once they are known.
        late_materialization=False if is_small else [name for name in _WIDE if name in columns],
        use_scalar_index=False,
    ).to_table()
    return found.replace_schema_metadata(dataset.schema.metadata)


def name_columns(*groups: Sequence[str]) -> list[str]:
    """Name each column once, and those by which `to_whole_scope` tells windows apart."""
    return list(dict.fromkeys([*(name for group in groups for name in group), *_SPLIT_BY]))


def first_windows(rows: pa.Table) -> pa.Table:
    """Return the rows that hold a whole memory, without its vector, in the order of keys."""
    rest = rows.drop_columns(["vector"])
    return rest.filter(pa.compute.equal(rest["passage"], 0)).sort_by("key")


def to_whole_scope(rows: pa.Table, memories: pa.Table, *, records: Sequence[str]) -> WholeScope:
    """Lay a scope out.

    Args:
        rows: All rows of the scope.
        memories: Their `first_windows`.
        records: The columns that hold whole memories, `key` among them.
    """
    dimension = rows.schema.field("vector").type.list_size
    batches = rows.select(["key", *_SPLIT_BY]).to_batches()
    vectors = np.empty((rows.num_rows, dimension), np.float32)
    return WholeScope(
        lance_rows.to_scope_columns(memories),
        lance_rows.gather_vectors(batches, into=vectors),
        ArrowRecords.of(memories.select(list(records))),
    )
