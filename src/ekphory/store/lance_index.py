"""The vector index: built when a scope outgrows exact search, searched by selectivity."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.index import Bitmap, BTree, HnswFlat, HnswPq, HnswSq, IvfFlat, IvfPq, IvfRq, IvfSq
from lancedb.query import LanceVectorQueryBuilder
from numpy.typing import NDArray

from ekphory.config import read_vector_index
from ekphory.errors import InvalidInput
from ekphory.scope import SCOPE_FIELDS

FEWEST_ROWS = 20_000
"""Below this many rows no scalar index is built: a scan is as fast."""
_ROWS_PER_PARTITION = 800
_PROBED_SHARE = 0.04
_FEWEST_PROBES = 150
_OUTGROWN = 2.5
"""Partitions this many times as large as they were meant to be are cut anew."""
_SECONDS_BETWEEN_LOOKS = 5.0
_NAME = re.compile(r"vector_(?:(\w+)_)?(\d+)")
"""The index is named after its settings and partitions, which Lance does not tell."""
_KINDS = {
    "ivf_rq": IvfRq,
    "ivf_pq": IvfPq,
    "ivf_sq": IvfSq,
    "ivf_flat": IvfFlat,
    "ivf_hnsw_pq": HnswPq,
    "ivf_hnsw_sq": HnswSq,
    "ivf_hnsw_flat": HnswFlat,
}
DEFAULT_KIND = "ivf_rq"
_BUILDING = ("num_partitions", "num_sub_vectors", "num_bits", "m", "ef_construction")
_SEARCHING = ("nprobes", "ef", "refine_factor")
_SCALAR_INDEXES: Mapping[str, type[BTree | Bitmap]] = {
    **dict.fromkeys(("key", "id", "fingerprint"), BTree),
    **dict.fromkeys((*SCOPE_FIELDS, "pool"), Bitmap),
}


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """How the vector index is built and searched.

    Attributes:
        kind: LanceDB's name of it, in small letters.
        building: Its parameters, as LanceDB has them; what is left out is chosen by size.
        searching: `nprobes`, `ef` and `refine_factor` of a search, likewise.
    """

    kind: str = DEFAULT_KIND
    building: Mapping[str, int] = field(default_factory=dict)
    searching: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, table: lancedb.table.Table) -> IndexSettings:
        """Read them from `EKPHORY_VECTOR_INDEX`, for a table's vectors.

        Raises:
            InvalidInput: The kind is not known, has no such parameter, or cannot be built with it.
        """
        kind, given = read_vector_index()
        known = _KINDS.get(kind or DEFAULT_KIND)
        taken = [] if known is None else [each.name for each in fields(known)]
        usable = {*(name for name in _BUILDING if name in taken), *_SEARCHING}
        if known is None or not given.keys() <= usable:
            choices = ", ".join(_KINDS) if known is None else ", ".join(sorted(usable))
            wrong = kind if known is None else sorted(given.keys() - usable)[0]
            problem = "must be a kind of vector index, or a parameter of it"
            raise InvalidInput("EKPHORY_VECTOR_INDEX", wrong, problem, f"Known are {choices}")
        if given:
            dimension = table.schema.field("vector").type.list_size
            _check_parameters(kind or DEFAULT_KIND, given, dimension)
        return cls(
            kind or DEFAULT_KIND,
            {name: value for name, value in given.items() if name in _BUILDING},
            {name: value for name, value in given.items() if name in _SEARCHING},
        )

    @property
    def label(self) -> str:
        """What an index that is built so is named after; empty where nothing was chosen."""
        chosen = [f"{name}{value}" for name, value in sorted(self.building.items())]
        return "" if self == IndexSettings() else "_".join([self.kind, *chosen])


def _check_parameters(kind: str, given: Mapping[str, int], dimension: int) -> None:
    """Refuse what LanceDB would refuse once there are enough memories for an index."""
    usable = {
        "num_sub_vectors": [part for part in range(1, dimension + 1) if dimension % part == 0],
        "num_bits": [*range(1, 10)] if kind == "ivf_rq" else [4, 8, 16],
    }
    for name, choices in usable.items():
        if name in given and given[name] not in choices:
            problem = f"cannot be for vectors of {dimension} numbers"
            remedy = f"Take one of {', '.join(map(str, choices))}"
            raise InvalidInput("EKPHORY_VECTOR_INDEX", f"{name}={given[name]}", problem, remedy)


class VectorIndex:
    """Wraps one table's approximate index, and the scalar ones that make conditions cheap."""

    def __init__(self, table: lancedb.table.Table, settings: IndexSettings | None = None) -> None:
        """Wrap a table's index; None for the settings of the environment."""
        self._table = table
        self._settings = settings or IndexSettings.read(table)
        self._name: str | None = None
        self._looked_at = -math.inf
        self.wanted = False
        """Whether a search missed an index that would have served it."""

    def build(self) -> None:
        """Build the vector index: by default quantised to one bit a dimension, ranked exactly."""
        self.build_scalar()
        earlier = self._look()
        partitions = max(1, round(self._table.count_rows() / _ROWS_PER_PARTITION))
        building = {"num_partitions": partitions, **self._settings.building}
        config = _KINDS[self._settings.kind](distance_type="dot", **building)
        label = self._settings.label
        name = f"vector_{label}_{building['num_partitions']}".replace("__", "_")
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
            searching = {"nprobes": min(partitions, probes), **self._settings.searching}
            for parameter, value in searching.items():
                query = getattr(query, parameter)(value)
        else:
            self.wanted = True
        found: pa.Table = query.to_batches().read_all()
        return found

    def is_outgrown(self, rows: int) -> bool:
        """Whether the table's rows are too many for its index, or it was to be built otherwise."""
        name = self._look()
        found = None if name is None else _NAME.fullmatch(name)
        if found is not None and (found[1] or "") != self._settings.label:
            return True
        partitions = self._partitions_of(name)
        if "num_partitions" in self._settings.building and partitions:
            return False
        return rows > _OUTGROWN * _ROWS_PER_PARTITION * partitions

    def _partitions_of(self, name: str | None) -> int:
        found = None if name is None else _NAME.fullmatch(name)
        return 0 if found is None else int(found[2])

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
