"""The Lance table's columns, and rows to and from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import UTC
from typing import Any

import numpy as np
import pyarrow as pa

from ekphory import legacy
from ekphory.errors import SchemaTooNew, StoreError
from ekphory.filters.metadata_encoding import decode_metadata, encode_metadata
from ekphory.models.embedder import EmbedderIdentity
from ekphory.store.record_text import decode_record, encode_record
from ekphory.store.row_checksums import CHECKSUM, RECORD, row_checksum, rows_with_vectors
from ekphory.store.store import SCHEMA_VERSION, StoredMemory, StoreIdentity
from ekphory.types import MemoryRecord

_IN_WHOLE_RECORD_ALONE = ("predicted",)
"""Fields without a column of their own: a table of schema version 1 does not keep them."""
RECORD_COLUMNS = tuple(
    entry.name for entry in fields(MemoryRecord) if entry.name not in _IN_WHOLE_RECORD_ALONE
)
_WHOLE_RECORD = RECORD
_WHOLE_RECORDS_SINCE = 2
"""Tables of an earlier schema version hold a memory in its columns alone."""
IMPORTANCE_GIVEN = "importance_given"
_MARKS_SINCE = 3
_CHECKSUMS_SINCE = 4
_MOMENTS = ("at", "created_at", "expires_at")
_STORED_AS = {"metadata": pa.string()}
"""Columns whose values Arrow does not take as they are."""
_PREFIX = "ekphory."
# A window after the first repeats only what conditions on scope and history read.
_WINDOW_COLUMNS = ("org", "project", "agent", "user", "session", "pool", "superseded_by")


def table_schema(identity: StoreIdentity) -> pa.Schema:
    """Columns of the table, with the store's identity in the schema's metadata."""
    kinds: dict[str, pa.DataType] = dict.fromkeys(RECORD_COLUMNS, pa.string())
    kinds |= dict.fromkeys(_MOMENTS, pa.timestamp("us", tz="UTC"))
    kinds |= {"importance": pa.float64(), "sequence": pa.int64(), "metadata": pa.json_()}
    derived = {
        "key": pa.int64(),
        "passage": pa.int32(),
        "windows": pa.int32(),
        "thread": pa.int64(),
        "fingerprint": pa.string(),
        "terms": pa.list_(pa.uint32()),
        "vector": pa.list_(pa.float32(), identity.embedder.dimension),
    }
    if identity.schema_version >= _WHOLE_RECORDS_SINCE:
        derived[_WHOLE_RECORD] = pa.string()
    derived |= dict.fromkeys(marks(identity), pa.bool_())
    if identity.schema_version >= _CHECKSUMS_SINCE:
        derived[CHECKSUM] = pa.int64()
    return pa.schema(list((kinds | derived).items()), metadata=_identity_metadata(identity))


def keyed_record_columns(identity: StoreIdentity) -> list[str]:
    """Name the columns from which `to_records_by_key` reads whole memories."""
    whole = identity.schema_version >= _WHOLE_RECORDS_SINCE
    return ["key", *((_WHOLE_RECORD,) if whole else RECORD_COLUMNS)]


def marks(identity: StoreIdentity) -> tuple[str, ...]:
    """Name the columns that tell what the caller gave from what a model predicted."""
    return (IMPORTANCE_GIVEN,) if identity.schema_version >= _MARKS_SINCE else ()


def _identity_metadata(identity: StoreIdentity) -> dict[str, str]:
    embedder = identity.embedder
    return {
        f"{_PREFIX}schema_version": str(identity.schema_version),
        f"{_PREFIX}terms_version": identity.terms_version,
        f"{_PREFIX}embedder.name": embedder.name,
        f"{_PREFIX}embedder.revision": embedder.revision,
        f"{_PREFIX}embedder.dimension": str(embedder.dimension),
    }


def read_identity(schema: pa.Schema, *, where: str) -> StoreIdentity:
    """Read the identity that the table was made with.

    Raises:
        StoreError: The table was not written by ekphory.
        SchemaTooNew: It was written by a newer ekphory.
    """
    entries = legacy.current_table_metadata(
        {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
    )
    try:
        version = int(entries[f"{_PREFIX}schema_version"])
        if version > SCHEMA_VERSION:
            raise SchemaTooNew(
                f"{where}: written with schema version {version}, this ekphory reads up to "
                f"{SCHEMA_VERSION}. Upgrade it with: pip install --upgrade ekphory"
            )
        embedder = EmbedderIdentity(
            legacy.current_model(entries[f"{_PREFIX}embedder.name"]),
            entries[f"{_PREFIX}embedder.revision"],
            int(entries[f"{_PREFIX}embedder.dimension"]),
        )
        return StoreIdentity(version, entries[f"{_PREFIX}terms_version"], embedder)
    except (KeyError, ValueError) as error:
        raise StoreError(
            f"{where}: the table there was not made by ekphory. Choose another directory."
        ) from error


def to_table(memories: Sequence[StoredMemory], schema: pa.Schema) -> pa.Table:
    """Lay memories out as rows: one for each window of the text, the first with all fields."""
    rows = [row for memory in memories for row in _rows(memory)]
    if CHECKSUM in schema.names:
        every = (vector for memory in memories for vector in memory.vectors)
        for row, vector in zip(rows, every, strict=True):
            row[CHECKSUM] = row_checksum(row, vector)
    names = [name for name in schema.names if name != "vector"]
    stored = pa.struct([(name, _STORED_AS.get(name) or schema.field(name).type) for name in names])
    # By way of one struct: Arrow lays out whole dictionaries sooner than each column's values.
    columns = dict(zip(names, pa.array(rows, stored).flatten(), strict=True))
    for name in _STORED_AS:
        columns[name] = pa.ExtensionArray.from_storage(schema.field(name).type, columns[name])
    vectors = np.concatenate([memory.vectors for memory in memories])
    flat = pa.array(np.ascontiguousarray(vectors, np.float32).ravel(), pa.float32())
    columns["vector"] = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    return pa.table([columns[name] for name in schema.names], schema=schema)


def told_schema(memories: Sequence[StoredMemory], schema: pa.Schema) -> pa.Schema:
    """Leave out the columns of which none of the memories says anything.

    Lance appends fewer columns sooner, and reads what was left out as missing.
    """
    silent = {
        name
        for name in RECORD_COLUMNS
        if all(getattr(memory.record, name) is None for memory in memories)
    }
    told = [field for field in schema if field.name not in silent]
    return pa.schema(told, metadata=schema.metadata)


def _rows(memory: StoredMemory) -> Iterator[dict[str, Any]]:
    record = memory.record
    values = {name: getattr(record, name) for name in RECORD_COLUMNS}
    values["metadata"] = encode_metadata(record.metadata)
    values |= {"key": memory.key, "passage": 0, "thread": memory.thread, "terms": memory.terms}
    values |= {"fingerprint": memory.fingerprint, "windows": len(memory.vectors)}
    values[IMPORTANCE_GIVEN] = "importance" not in record.predicted
    yield values | {_WHOLE_RECORD: encode_record(record)}
    for window in range(1, len(memory.vectors)):
        shared = {name: values[name] for name in _WINDOW_COLUMNS}
        yield shared | {"key": memory.key, "passage": window}


def completed(batch: pa.RecordBatch, schema: pa.Schema, *, dimension: int) -> pa.RecordBatch:
    """Give rows of an earlier schema version what they lack, their checksums among it.

    A checksum that is there stays as it is, so that it goes on to tell of damage.
    """
    table = pa.Table.from_batches([batch])
    rows = list(rows_with_vectors(table, dimension=dimension))
    first = [number for number, (row, _) in enumerate(rows) if row["passage"] == 0]
    for number, record in zip(
        first, to_records(table.take(pa.array(first, pa.int64()))), strict=True
    ):
        row, _ = rows[number]
        row.setdefault(_WHOLE_RECORD, encode_record(record))
        row.setdefault(IMPORTANCE_GIVEN, "importance" not in record.predicted)
    for row, vector in rows:
        if row.get(CHECKSUM) is None:
            row[CHECKSUM] = row_checksum(row, vector)
    for name in (_WHOLE_RECORD, IMPORTANCE_GIVEN, CHECKSUM):
        column = pa.array([row.get(name) for row, _ in rows], schema.field(name).type)
        present = table.column_names.index(name) if name in table.column_names else None
        if present is None:
            table = table.append_column(name, column)
        else:
            table = table.set_column(present, table.field(present), column)
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def to_records(table: pa.Table) -> list[MemoryRecord]:
    """Read rows back as memories.

    Raises:
        StoreError: A row was damaged since it was written.
    """
    try:
        return _records(table)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise StoreError(
            f"a row of memories.lance is damaged ({error}). `ekphory doctor --verify` names the "
            "memory and the file, and `ekphory restore` brings a backup back."
        ) from error


def _records(table: pa.Table) -> list[MemoryRecord]:
    if _WHOLE_RECORD in table.column_names:
        return [decode_record(text) for text in table[_WHOLE_RECORD].to_pylist()]
    columns = {name: table[name].to_pylist() for name in RECORD_COLUMNS if name != "metadata"}
    for name in _MOMENTS:
        # Arrow gives zoneinfo's UTC, which is the same moment but another object.
        columns[name] = [moment and moment.astimezone(UTC) for moment in columns[name]]
    columns["metadata"] = [_metadata(value) for value in table["metadata"].to_pylist()]
    return [
        MemoryRecord(**{name: values[row] for name, values in columns.items()})
        for row in range(table.num_rows)
    ]


def to_records_by_key(table: pa.Table) -> dict[int, MemoryRecord]:
    """Read rows back as memories, by key."""
    return dict(zip(table["key"].to_pylist(), to_records(table), strict=True))


def _metadata(value: str | bytes | None) -> dict[str, Any]:
    if not value:
        return {}
    return dict(decode_metadata(value if isinstance(value, str) else value.decode()))


def microseconds(column: pa.ChunkedArray, *, missing: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Give a column of moments as microseconds since 1970."""
    return integers(column.cast(pa.timestamp("us")).cast(pa.int64()), missing=missing)


def integers(column: pa.ChunkedArray, *, missing: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Give a column of integers, with a value for those that are missing."""
    return np.asarray(column.fill_null(missing).to_numpy(), np.int64)


def vectors(column: pa.ChunkedArray, *, dimension: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Give a column of vectors as a matrix, shape (rows, dimension)."""
    flat = column.combine_chunks().flatten()
    return np.asarray(flat.to_numpy(zero_copy_only=False), np.float32).reshape(-1, dimension)
