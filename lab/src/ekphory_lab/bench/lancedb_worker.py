"""What one would write with LanceDB alone: batches into a table, a vector and a text search."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.index import FTS, Bitmap, IvfPq
from lancedb.query import MatchQuery

from ekphory.models.embedder import FloatMatrix
from ekphory_lab.bench.generate import BATCH, passage
from ekphory_lab.bench.measure import Setup
from ekphory_lab.bench.worker import Record, StoreWorker, milliseconds_since, serve

INDEXED_SCOPE = 20_000
"""A scope with more rows gets a vector index; a filtered scan of fewer is exact and quick."""
_REFINE = 10
_CUTOFFS = (10, 100)
_COLUMNS = ("id", "text", "project")


class LanceDbStore(StoreWorker):
    """A table with a vector, a text index and a filter: no product code, the same model."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._schema = pa.schema(
            [
                *(pa.field(name, pa.string()) for name in _COLUMNS),
                pa.field("vector", pa.list_(pa.float32(), self._embedder.identity.dimension)),
            ]
        )
        connection = lancedb.connect(setup.directory)
        self._table = connection.create_table("memories", schema=self._schema, exist_ok=True)

    def write_records(self, records: Sequence[Record]) -> dict[str, Any]:
        """Write memories in batches of 256."""
        started = time.perf_counter()
        for first in range(0, len(records), BATCH):
            self._append(records[first : first + BATCH])
        return {"rows": len(records), "seconds": time.perf_counter() - started}

    def adding(self, record: Record) -> Callable[[], object]:
        """Return the call that appends one memory."""
        return partial(self._append, [record])

    def index(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Bring the text index up to date, and the vector index where the scopes are large."""
        present = {column for index in self._table.list_indices() for column in index.columns}
        if "text" not in present:
            self._table.create_index("text", config=FTS())
            self._table.create_index("project", config=Bitmap())
        if payload["rows"] / self._setup.scopes > INDEXED_SCOPE:
            self._table.create_index("vector", config=IvfPq(distance_type="cosine"), replace=True)
        self._table.optimize()
        return {}

    def search(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Search one scope by vector and by text; the query's embedding is counted."""
        condition, k = _condition(payload["project"]), payload["k"]
        started = time.perf_counter()
        vector = self._embedder.encode_query([payload["text"]])[0]
        self._nearest(vector, condition).limit(k).select(["id", "text"]).to_list()
        words = self._table.search(_match(payload["text"]), query_type="fts")
        words.where(condition, prefilter=True).limit(k).select(["id", "text"]).to_list()
        return {"milliseconds": milliseconds_since(started), "stages": {}}

    def recall(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Compare the vector search with an exact scan, for each query."""
        shares: dict[int, list[float]] = {cutoff: [] for cutoff in _CUTOFFS}
        for query in payload["queries"]:
            vector = self._embedder.encode_query([query["text"]])[0]
            for cutoff in _CUTOFFS:
                near = self._nearest(vector, _condition(query["project"]))
                exact = self._nearest(vector, _condition(query["project"])).bypass_vector_index()
                found, wanted = (_ids(search, cutoff) for search in (near, exact))
                shares[cutoff].append(len(found & wanted) / max(len(wanted), 1))
        means = {str(cutoff): round(float(np.mean(each)), 4) for cutoff, each in shares.items()}
        return {"recall": means, "short": None}

    def _append(self, records: Sequence[Record]) -> None:
        texts = [passage(record) for record in records]
        vectors = self._embedder.encode(texts)
        columns = [
            pa.array([record["id"] for record in records]),
            pa.array(texts),
            pa.array([record["project"] for record in records]),
            pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1]),
        ]
        self._table.add(pa.Table.from_arrays(columns, schema=self._schema))

    def _nearest(self, vector: FloatMatrix, condition: str) -> Any:  # noqa: ANN401  LanceDB's
        query: Any = self._table.search(vector, vector_column_name="vector")
        return query.distance_type("cosine").where(condition, prefilter=True).refine_factor(_REFINE)


def _match(text: str) -> Any:  # noqa: ANN401  LanceDB's
    make: Any = MatchQuery
    return make(text, "text")


def _condition(project: str) -> str:
    return f"project = '{project}'"


def _ids(search: Any, limit: int) -> set[str]:  # noqa: ANN401  LanceDB's query
    return {row["id"] for row in search.limit(limit).select(["id"]).to_list()}


if __name__ == "__main__":
    serve(lambda: LanceDbStore(Setup.from_json(sys.argv[1])))
