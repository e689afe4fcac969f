"""The vector index: built when a scope outgrows exact search, searched by selectivity."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.index import Bitmap, BTree, IvfRq
from lancedb.query import LanceVectorQueryBuilder
from numpy.typing import NDArray

from ekphory.scope import SCOPE_FIELDS

FEWEST_ROWS = 20_000
"""Below this many rows no scalar index is built: a scan is as fast."""
_ROWS_PER_PARTITION = 800
_PROBED_SHARE = 0.04
_FEWEST_PROBES = 96
_OUTGROWN = 2.5
"""Partitions this many times as large as they were meant to be are cut anew."""
_SECONDS_BETWEEN_LOOKS = 5.0
_NAME = re.compile(r"vector_(\d+)")
"""The index is named after the number of its partitions, which Lance does not tell."""
_SCALAR_INDEXES: Mapping[str, type[BTree | Bitmap]] = {
    **dict.fromkeys(("key", "id", "fingerprint"), BTree),
    **dict.fromkeys((*SCOPE_FIELDS, "pool"), Bitmap),
}


class VectorIndex:
    """Wraps one table's approximate index, and the scalar ones that make conditions cheap."""

    def __init__(self, table: lancedb.table.Table) -> None:
        self._table = table
        self._name: str | None = None
        self._looked_at = -math.inf
        self.wanted = False
        """Whether a search missed an index that would have served it."""

    def build(self) -> None:
        """Build the vector index: quantised to one bit a dimension, re-ranked exactly."""
        self.build_scalar()
        earlier = self._look()
        partitions = _partitions(self._table.count_rows())
        config = IvfRq(distance_type="dot", num_partitions=partitions)
        name = f"vector_{partitions}"
        self._table.create_index("vector", config=config, replace=True, name=name)
        if earlier not in (None, name):
            self._table.drop_index(earlier)
        self._name = name
        self.wanted = False

    def build_scalar(self) -> None:
        """Build the indexes that make scope conditions and look-ups by id cheap."""
        present = {column for index in self._table.list_indices() for column in index.columns}
        for column, kind in _SCALAR_INDEXES.items():
            if column not in present:
                self._table.create_index(column, config=kind())

    def covered_rows(self) -> int | None:
        """Rows that the vector index covers; None without one."""
        name = self._look()
        if name is None:
            return None
        statistics = self._table.index_stats(name)
        return None if statistics is None else int(statistics.num_indexed_rows)

    def nearest(
        self, vector: NDArray[np.float32], condition: str | None, *, limit: int
    ) -> pa.Table:
        """Find the rows nearest by dot product, by the index's own estimate; column `_rowid`.

        Nothing but the index is read: a column of the rows, or their exact distance, would cost
        a read of the disk for each of them.
        """
        # Not `search` and `to_arrow`, which read the schema once more each.
        query: Any = LanceVectorQueryBuilder(self._table, vector, "vector")
        query = query.distance_type("dot").limit(limit).select(["_distance"]).with_row_id(True)
        if condition is not None:
            query = query.where(condition, prefilter=True)
        partitions = self._partitions_of(self._known_name())
        if partitions:
            probes = max(_FEWEST_PROBES, math.ceil(partitions * _PROBED_SHARE))
            query = query.nprobes(min(partitions, probes))
        else:
            self.wanted = True
        found: pa.Table = query.to_batches().read_all()
        return found

    def is_outgrown(self, rows: int) -> bool:
        """Whether the table's rows are too many for the partitions of its index."""
        partitions = self._partitions_of(self._look())
        return rows > _OUTGROWN * _ROWS_PER_PARTITION * partitions

    def _partitions_of(self, name: str | None) -> int:
        found = None if name is None else _NAME.fullmatch(name)
        return 0 if found is None else int(found[1])

    def _known_name(self) -> str | None:
        # Another process may build or replace the index, so what is known is looked at again.
        if time.monotonic() - self._looked_at > _SECONDS_BETWEEN_LOOKS:
            return self._look()
        return self._name

    def _look(self) -> str | None:
        indexes = [each for each in self._table.list_indices() if list(each.columns) == ["vector"]]
        self._name = str(indexes[-1].name) if indexes else None
        self._looked_at = time.monotonic()
        return self._name


def _partitions(rows: int) -> int:
    return max(1, round(rows / _ROWS_PER_PARTITION))
