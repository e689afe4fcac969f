"""Vectors of other models beside a store's own: those in the making, and those kept to go back.

Those of one model lie in a Lance table of their own, a row for each window of a memory, by the
memory's key. The text under a key never changes, so what was made of it once stays true.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from datetime import timedelta
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa

from ekphory.errors import StoreLocked
from ekphory.models.embedder import EmbedderIdentity, FloatMatrix
from ekphory.store.lance_rows import describe_embedder, integers, keyed_vectors, read_embedder
from ekphory.store.lance_table import ALL_ROWS, connect, is_remote
from ekphory.store.lance_upkeep import STABLE_ROW_IDS, sweep_table
from ekphory.store.protocol import IntArray

_TABLE = re.compile(r"ekphory_vectors_[0-9a-f]{16}")
_MOST_TABLES = 1_000
_COLUMNS = ["key", "passage", "vector"]
_COMMITS_BETWEEN_SWEEPS = 64
_ROWS_READ = 8_192
_NO_TIME = timedelta(milliseconds=1)


class VectorsBeside:
    """The vectors of one model beside those of a store; used by one thread at a time.

    Attributes:
        embedder: The model.
    """

    def __init__(self, uri: str, embedder: EmbedderIdentity) -> None:
        """Open those of a store at a Lance URI, which need not have any of this model."""
        self.embedder = embedder
        self._uri = uri
        self._name = _table_name(embedder)
        self._table = None
        with suppress(ValueError):
            self._table = connect(uri).open_table(self._name)

    @property
    def keys(self) -> IntArray:
        """Keys of the memories that have vectors, ascending."""
        return np.unique(self._places[0])

    @cached_property
    def _places(self) -> tuple[IntArray, IntArray]:
        """The key and the row id of every row, as of the first look."""
        if self._table is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        query = self._table.search().limit(ALL_ROWS).select(["key"]).with_row_id(True)
        found = query.to_arrow()
        return integers(found["key"], missing=0), found["_rowid"].to_numpy().astype(np.int64)

    def read(self, keys: Iterable[int]) -> dict[int, FloatMatrix]:
        """Return the vectors of those of these memories that have some, by key."""
        owners, rows = self._places
        wanted = rows[np.isin(owners, np.fromiter(keys, np.int64))]
        if self._table is None or not len(wanted):
            return {}
        taken = self._table.take_row_ids(wanted.tolist()).select(_COLUMNS).to_arrow()
        ordered = taken.sort_by([("key", "ascending"), ("passage", "ascending")])
        found = keyed_vectors(ordered, dimension=self.embedder.dimension)
        owners, starts = np.unique(found.keys, return_index=True)
        return dict(zip(owners.tolist(), np.split(found.vectors, starts[1:]), strict=True))

    def read_all(self, keys: Iterable[int]) -> dict[int, FloatMatrix]:
        """Return the vectors of all these memories, one of zeros where there is none."""
        zeros = np.zeros((1, self.embedder.dimension), np.float32)
        return dict.fromkeys(keys, zeros) | self.read(keys)

    def add(self, made: Mapping[int, FloatMatrix]) -> None:
        """Add vectors by key in one commit; the caller holds the writer's lock."""
        rows = _to_rows(made, self._schema)
        if self._table is None:
            self.replace([rows])
            return
        # A purge of another process may have written it anew.
        self._table.checkout_latest()
        self._table.add(pa.Table.from_batches([rows]))
        version = int(self._table.version)
        if version % _COMMITS_BETWEEN_SWEEPS == 0 and not is_remote(self._uri):
            # Where an index is being built, the next time will do.
            with suppress(StoreLocked):
                sweep_table(self._folder, keep_from=version, seconds=0)

    def replace(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Write all anew from rows of key, passage and vector; no file of those before stays."""
        rows = (pa.RecordBatch.from_arrays(each.columns, schema=self._schema) for each in batches)
        self._table = connect(self._uri).create_table(
            self._name,
            data=pa.RecordBatchReader.from_batches(self._schema, rows),
            mode="create" if self._table is None else "overwrite",
            storage_options=STABLE_ROW_IDS,
        )
        if is_remote(self._uri):
            self._table.optimize(cleanup_older_than=_NO_TIME, delete_unverified=True)
        else:
            sweep_table(self._folder, keep_from=int(self._table.version))

    def keep_only(self, keys: IntArray) -> None:
        """Write all anew without the memories that have none of these keys."""
        if self._table is not None:
            reader = self._table.search().limit(ALL_ROWS).select(_COLUMNS).to_batches(_ROWS_READ)
            self.replace(
                batch.filter(pa.array(np.isin(batch["key"].to_numpy(), keys))) for batch in reader
            )

    @property
    def _folder(self) -> Path:
        return Path(self._uri) / f"{self._name}.lance"

    @property
    def _schema(self) -> pa.Schema:
        vector = pa.list_(pa.float32(), self.embedder.dimension)
        kinds = zip(_COLUMNS, (pa.int64(), pa.int32(), vector), strict=True)
        return pa.schema(list(kinds), metadata=describe_embedder(self.embedder))


def list_vectors_beside(uri: str) -> Iterator[VectorsBeside]:
    """Yield all vectors beside those of a store."""
    connection = connect(uri)
    for name in _list_tables(uri):
        # What a kill left of a removal is no table.
        with suppress(ValueError):
            metadata = connection.open_table(name).schema.metadata
            entries = {key.decode(): value.decode() for key, value in metadata.items()}
            yield VectorsBeside(uri, read_embedder(entries))


def drop_others(uri: str, *, keep: Set[EmbedderIdentity | None]) -> None:
    """Remove vectors of all other models, and what kills left; the caller holds the lock."""
    for name in set(_list_tables(uri)) - {_table_name(each) for each in keep if each is not None}:
        if is_remote(uri):
            connect(uri).drop_table(name)
            continue
        folder = Path(uri) / f"{name}.lance"
        # Its versions first: without them it is no table, so that a kill leaves no broken one.
        shutil.rmtree(folder / "_versions", ignore_errors=True)
        shutil.rmtree(folder)


def _list_tables(uri: str) -> list[str]:
    found = connect(uri).list_tables(limit=_MOST_TABLES).tables
    return [name for name in found if _TABLE.fullmatch(name)]


def _table_name(embedder: EmbedderIdentity) -> str:
    return f"ekphory_vectors_{blake2b(str(embedder).encode(), digest_size=8).hexdigest()}"


def _to_rows(made: Mapping[int, FloatMatrix], schema: pa.Schema) -> pa.RecordBatch:
    keys = [key for key, windows in made.items() for _ in windows]
    passages = [passage for windows in made.values() for passage in range(len(windows))]
    flat = np.ascontiguousarray(np.concatenate(list(made.values())), np.float32).ravel()
    size = schema.field("vector").type.list_size
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(flat), size)
    columns = [pa.array(keys, pa.int64()), pa.array(passages, pa.int32()), vectors]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
