"""The vector index: built when a scope outgrows exact search, searched by selectivity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.index import Bitmap, BTree, IvfRq
from numpy.typing import NDArray

FEWEST_ROWS = 20_000
"""Below this many rows no scalar index is built: a scan is as fast."""
_ROWS_PER_PARTITION = 800
_PROBED_SHARE = 0.5
_FEWEST_PROBES = 64
_SCALAR_INDEXES: Mapping[str, type[BTree | Bitmap]] = {
    "key": BTree,
    "id": BTree,
    "fingerprint": BTree,
    "org": Bitmap,
    "project": Bitmap,
    "agent": Bitmap,
    "user": Bitmap,
    "session": Bitmap,
    "pool": Bitmap,
}


class VectorIndex:
    """Wraps one table's approximate index, and the scalar ones that make conditions cheap."""

    def __init__(self, table: lancedb.table.Table) -> None:
        self._table = table
        self.wanted = False
        """Whether a search missed an index that would have served it."""

    def build(self) -> None:
        """Build the vector index: quantised to one bit a dimension, re-ranked exactly."""
        self.build_scalar()
        partitions = _partitions(self._table.count_rows())
        config = IvfRq(distance_type="dot", num_partitions=partitions)
        self._table.create_index("vector", config=config, replace=True)
        self.wanted = False

    def build_scalar(self) -> None:
        """Build the indexes that make scope conditions and look-ups by id cheap."""
        present = {column for index in self._table.list_indices() for column in index.columns}
        for column, kind in _SCALAR_INDEXES.items():
            if column not in present:
                self._table.create_index(column, config=kind())

    def covered_rows(self) -> int | None:
        """Rows that the vector index covers; None without one."""
        name = self._name()
        if name is None:
            return None
        statistics = self._table.index_stats(name)
        return None if statistics is None else int(statistics.num_indexed_rows)

    def nearest(
        self, vector: NDArray[np.float32], condition: str | None, *, limit: int
    ) -> pa.Table:
        """Find the rows nearest by dot product; columns `key` and `_distance` (1 - product)."""
        query: Any = self._table.search(vector, vector_column_name="vector")
        query = query.distance_type("dot").limit(limit).select(["key", "_distance"])
        if condition is not None:
            query = query.where(condition, prefilter=True)
        if self._name() is not None:
            partitions = _partitions(self._table.count_rows())
            probes = max(_FEWEST_PROBES, math.ceil(partitions * _PROBED_SHARE))
            query = query.nprobes(min(partitions, probes)).refine_factor(1)
        else:
            self.wanted = True
        return query.to_arrow()

    def _name(self) -> str | None:
        for index in self._table.list_indices():
            if list(index.columns) == ["vector"]:
                return str(index.name)
        return None


def _partitions(rows: int) -> int:
    return max(1, round(rows / _ROWS_PER_PARTITION))
