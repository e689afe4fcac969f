"""Whole memories as Arrow columns, made into records when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ekphory.store import lance_schema
from ekphory.store.store import IntArray
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
        keys = lance_schema.integers(ordered["key"], missing=0)
        return cls(keys, ordered.drop_columns(["key"]))

    @property
    def nbytes(self) -> int:
        """Memory of the columns and keys."""
        return int(self.table.nbytes) + self.keys.nbytes

    def at(self, places: IntArray) -> list[MemoryRecord]:
        """Give the memories at these places, in order."""
        return lance_schema.to_records(self.table.take(pa.array(places)))
