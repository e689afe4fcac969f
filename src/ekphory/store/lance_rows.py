"""The Lance table's columns, and rows to and from them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekphory import legacy
from ekphory.errors import SchemaTooNew, StoreError
from ekphory.models.embedder import EmbedderIdentity
from ekphory.scope import SCOPE_FIELDS
from ekphory.store.protocol import (
    NEVER,
    SCHEMA_VERSION,
    IntArray,
    KeyedVectors,
    ScopeColumns,
    StoredMemory,
    StoreIdentity,
)
from ekphory.types import EPOCH, MemoryRecord, decode_metadata, encode_metadata, to_microseconds

# A whole memory as one JSON text: a hit is read from one column instead of twenty-four.

_MOMENTS = ("at", "created_at", "expires_at")
_DEFAULTS = {
    entry.name: entry.default for entry in fields(MemoryRecord) if entry.default is not MISSING
}


def encode_record(record: MemoryRecord) -> str:
    """Return the JSON text; fields that have their default are left out."""
    content: dict[str, Any] = {
        entry.name: getattr(record, entry.name) for entry in fields(MemoryRecord)
    }
    content["metadata"] = dict(record.metadata)
    if record.predicted:
        content["predicted"] = sorted(record.predicted)
    for name in _MOMENTS:
        if content[name] is not None:
            content[name] = to_microseconds(content[name])
    kept = {
        name: value
        for name, value in content.items()
        if name not in _DEFAULTS or value != _DEFAULTS[name]
    }
    return json.dumps(kept, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def decode_record(text: str) -> MemoryRecord:
    """Return the memory whose text `encode_record` returned."""
    content: dict[str, Any] = json.loads(text)
    for name in _MOMENTS:
        if name in content:
            content[name] = EPOCH + timedelta(microseconds=content[name])
    if "predicted" in content:
        content["predicted"] = frozenset(content["predicted"])
    return MemoryRecord(**content)


# A checksum of each row, so that a byte that flipped on disk is found when rows are verified.

CHECKSUM = "checksum"
RECORD = "record"
_APART = ("metadata", "terms", "vector", RECORD, CHECKSUM)
"""Columns whose values do not go into the checksum as JSON does.

The metadata are in the record as well, and their own column comes back in Lance's own spelling.
"""


def row_checksum(row: Mapping[str, Any], vector: NDArray[np.float32]) -> int:
    """Return the first eight bytes of BLAKE2b over all that a row holds.

    Args:
        row: Values by column. One that is missing counts as one that is None, so that columns may
            be added.
        vector: The row's vector.
    """
    names = [name for name in sorted(row) if name not in _APART and row[name] is not None]
    plain = {name: row[name] for name in names}
    if "importance" in plain:
        # Given as 1, it is read as 1.0.
        plain["importance"] = float(plain["importance"])
    text = json.dumps(plain, ensure_ascii=False, default=_plain, separators=(",", ":"))
    digest = blake2b(digest_size=8)
    parts = [text, row.get(RECORD) or ""]
    terms = row.get("terms")
    numbers = np.asarray([] if terms is None else terms, "<u4").tobytes()
    for part in (*(each.encode() for each in parts), numbers, vector.astype("<f4").tobytes()):
        digest.update(len(part).to_bytes(8, "little") + part)
    return int.from_bytes(digest.digest(), "little", signed=True)


def rows_with_vectors(
    table: pa.Table, *, dimension: int
) -> Iterator[tuple[dict[str, Any], NDArray[np.float32]]]:
    """Yield the values of each row by column, and its vector, shape (dimension,)."""
    found = vectors(table["vector"], dimension=dimension)
    yield from zip(table.drop_columns(["vector"]).to_pylist(), found, strict=True)


def _plain(value: object) -> int:
    if isinstance(value, datetime):
        return to_microseconds(value)
    if isinstance(value, np.integer):
        return int(value)
    raise TypeError(f"the value of a row must be plain, got {value!r}")


# Columns and rows.

_IN_WHOLE_RECORD_ALONE = ("predicted",)
"""Fields without a column of their own: a table of schema version 1 does not keep them."""
RECORD_COLUMNS = tuple(
    entry.name for entry in fields(MemoryRecord) if entry.name not in _IN_WHOLE_RECORD_ALONE
)
_WHOLE_RECORDS_SINCE = 2
"""Tables of an earlier schema version hold a memory in its columns alone."""
IMPORTANCE_GIVEN = "importance_given"
_MARKS_SINCE = 3
_CHECKSUMS_SINCE = 4
_STORED_AS = {"metadata": pa.string()}
"""Columns whose values Arrow does not take as they are."""
_PREFIX = "ekphory."
# A window after the first repeats only what conditions on scope and history read.
_WINDOW_COLUMNS = (*SCOPE_FIELDS, "pool", "superseded_by")


def table_schema(identity: StoreIdentity) -> pa.Schema:
    """Return the columns of the table, with the store's identity in the schema's metadata."""
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
        derived[RECORD] = pa.string()
    derived |= dict.fromkeys(marks(identity), pa.bool_())
    if identity.schema_version >= _CHECKSUMS_SINCE:
        derived[CHECKSUM] = pa.int64()
    metadata = {
        f"{_PREFIX}schema_version": str(identity.schema_version),
        f"{_PREFIX}terms_version": identity.terms_version,
        **describe_embedder(identity.embedder),
    }
    if identity.generation:
        metadata[f"{_PREFIX}generation"] = str(identity.generation)
    if identity.previous is not None:
        metadata |= describe_embedder(identity.previous, role="previous")
    return pa.schema(list((kinds | derived).items()), metadata=metadata)


def describe_embedder(embedder: EmbedderIdentity, *, role: str = "embedder") -> dict[str, str]:
    """Return the entries of a schema's metadata that tell of a model."""
    entries = {"name": embedder.name, "revision": embedder.revision}
    entries["dimension"] = str(embedder.dimension)
    return {f"{_PREFIX}{role}.{name}": value for name, value in entries.items()}


def read_embedder(entries: Mapping[str, str], *, role: str = "embedder") -> EmbedderIdentity:
    """Read what `describe_embedder` wrote."""
    name, revision, dimension = (
        entries[f"{_PREFIX}{role}.{field}"] for field in ("name", "revision", "dimension")
    )
    return EmbedderIdentity(legacy.rename_model(name), revision, int(dimension))


def keyed_record_columns(identity: StoreIdentity) -> list[str]:
    """Name the columns from which `to_records_by_key` reads whole memories."""
    whole = identity.schema_version >= _WHOLE_RECORDS_SINCE
    return ["key", *((RECORD,) if whole else RECORD_COLUMNS)]


def marks(identity: StoreIdentity) -> tuple[str, ...]:
    """Name the columns that tell what the caller gave from what a model predicted."""
    return (IMPORTANCE_GIVEN,) if identity.schema_version >= _MARKS_SINCE else ()


SHARDS = f"{_PREFIX}shards"
"""Under this name the root of a store of shards says how many there are."""


def read_identity(schema: pa.Schema, *, where: str) -> StoreIdentity:
    """Read the identity that the table was made with.

    Raises:
        StoreError: The table was not written by ekphory.
        SchemaTooNew: It was written by a newer ekphory.
    """
    entries = legacy.rename_table_metadata(
        {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
    )
    if SHARDS in entries:
        raise StoreError(
            f"{where}: is a store of shards. Open it with "
            "`ekphory.cluster.shards.open_memory`, or serve it with `ekphory cluster serve`."
        )
    try:
        version = int(entries[f"{_PREFIX}schema_version"])
        if version > SCHEMA_VERSION:
            raise SchemaTooNew(
                f"{where}: written with schema version {version}, this ekphory reads up to "
                f"{SCHEMA_VERSION}. Upgrade it with: pip install --upgrade ekphory"
            )
        has_previous = f"{_PREFIX}previous.name" in entries
        return StoreIdentity(
            version,
            entries[f"{_PREFIX}terms_version"],
            read_embedder(entries),
            read_embedder(entries, role="previous") if has_previous else None,
            int(entries.get(f"{_PREFIX}generation", 0)),
        )
    except (KeyError, ValueError) as error:
        raise StoreError(
            f"{where}: the table there was not made by ekphory. Choose another directory."
        ) from error


def to_table(memories: Sequence[StoredMemory], schema: pa.Schema) -> pa.Table:
    """Lay memories out as rows: one for each window of the text, the first with all fields."""
    rows = [row for memory in memories for row in _rows(memory)]
    return _lay_out(rows, np.concatenate([memory.vectors for memory in memories]), schema)


def _lay_out(
    rows: list[dict[str, Any]], vectors: NDArray[np.float32], schema: pa.Schema
) -> pa.Table:
    if CHECKSUM in schema.names:
        for row, vector in zip(rows, vectors, strict=True):
            row[CHECKSUM] = row_checksum(row, vector)
    names = [name for name in schema.names if name != "vector"]
    stored = pa.struct([(name, _STORED_AS.get(name) or schema.field(name).type) for name in names])
    # By way of one struct: Arrow lays out whole dictionaries sooner than each column's values.
    columns = dict(zip(names, pa.array(rows, stored).flatten(), strict=True))
    for name in _STORED_AS:
        columns[name] = pa.ExtensionArray.from_storage(schema.field(name).type, columns[name])
    flat = pa.array(np.ascontiguousarray(vectors, np.float32).ravel(), pa.float32())
    columns["vector"] = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    return pa.table([columns[name] for name in schema.names], schema=schema)


def leave_out_empty_columns(memories: Sequence[StoredMemory], schema: pa.Schema) -> pa.Schema:
    """Return the schema without the columns that are empty in all of the memories.

    Lance appends fewer columns sooner, and reads what was left out as missing.
    """
    empty = {
        name
        for name in RECORD_COLUMNS
        if all(getattr(memory.record, name) is None for memory in memories)
    }
    kept = [field for field in schema if field.name not in empty]
    return pa.schema(kept, metadata=schema.metadata)


def _rows(memory: StoredMemory) -> Iterator[dict[str, Any]]:
    record = memory.record
    values = {name: getattr(record, name) for name in RECORD_COLUMNS}
    values["metadata"] = encode_metadata(record.metadata)
    values |= {"key": memory.key, "passage": 0, "thread": memory.thread, "terms": memory.terms}
    values["fingerprint"] = memory.fingerprint
    values[IMPORTANCE_GIVEN] = "importance" not in record.predicted
    yield from _with_windows(values | {RECORD: encode_record(record)}, memory.vectors)


def _with_windows(row: dict[str, Any], vectors: NDArray[np.float32]) -> Iterator[dict[str, Any]]:
    """Yield the row of a memory's first window, which has all fields, and those of the others."""
    yield row | {"windows": len(vectors) if vectors.any() else 0}
    for window in range(1, len(vectors)):
        shared = {name: row[name] for name in _WINDOW_COLUMNS}
        yield shared | {"key": row["key"], "passage": window}


def complete_batch(batch: pa.RecordBatch, schema: pa.Schema, *, dimension: int) -> pa.RecordBatch:
    """Add to rows of an earlier schema version what they lack, their checksums among it.

    A checksum that is there stays as it is, so that it goes on to tell of damage.
    """
    table = pa.Table.from_batches([batch])
    rows = list(rows_with_vectors(table, dimension=dimension))
    first = [number for number, (row, _) in enumerate(rows) if row["passage"] == 0]
    for number, record in zip(
        first, to_records(table.take(pa.array(first, pa.int64()))), strict=True
    ):
        row, _ = rows[number]
        row.setdefault(RECORD, encode_record(record))
        row.setdefault(IMPORTANCE_GIVEN, "importance" not in record.predicted)
    for row, vector in rows:
        if row.get(CHECKSUM) is None:
            row[CHECKSUM] = row_checksum(row, vector)
    for name in (RECORD, IMPORTANCE_GIVEN, CHECKSUM):
        column = pa.array([row.get(name) for row, _ in rows], schema.field(name).type)
        if name in table.column_names:
            present = table.column_names.index(name)
            table = table.set_column(present, table.field(present), column)
        else:
            table = table.append_column(name, column)
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def replace_vectors(
    batch: pa.RecordBatch,
    schema: pa.Schema,
    *,
    find: Callable[[list[int]], Mapping[int, NDArray[np.float32]]],
) -> pa.RecordBatch:
    """Return memories with other vectors, and as many rows as they need for these.

    Args:
        batch: Rows of any schema version.
        schema: Of the rows that are returned.
        find: Gives other vectors by key; the rows of all other memories stay as they are.
    """
    if not set(schema.names) <= set(batch.schema.names):
        dimension = batch.schema.field("vector").type.list_size
        batch = complete_batch(batch, schema, dimension=dimension)
    table = pa.Table.from_batches([batch]).select(schema.names)
    keys = integers(table["key"], missing=0)
    found = find(np.unique(keys).tolist())
    replaced = np.isin(keys, np.fromiter(found, np.int64, len(found)))
    first = replaced & (integers(table["passage"], missing=0) == 0)
    parts = [] if replaced.all() else [table.filter(pa.array(~replaced))]
    if first.any():
        heads = table.filter(pa.array(first)).drop_columns(["vector"]).to_pylist()
        rows = [row for head in heads for row in _with_windows(head, found[head["key"]])]
        vectors = np.concatenate([found[head["key"]] for head in heads])
        parts.append(_lay_out(rows, vectors, schema))
    batches = pa.concat_tables(parts).combine_chunks().to_batches() if parts else []
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=schema)


def to_stored(table: pa.Table, *, dimension: int) -> list[StoredMemory]:
    """Read memories with all that is derived from them, from all columns of all of their rows.

    Raises:
        StoreError: A row was damaged since it was written.
    """
    ordered = table.sort_by([("key", "ascending"), ("passage", "ascending")])
    for row, vector in rows_with_vectors(ordered, dimension=dimension):
        if row.get(CHECKSUM) not in (None, row_checksum(row, vector)):
            raise StoreError(
                f"a row of memory {row['id']!r} is not what was written. Forget it, or restore a "
                "backup."
            )
    keys, starts = np.unique(integers(ordered["key"], missing=0), return_index=True)
    first = ordered.take(pa.array(starts))
    columns = [first[name].to_pylist() for name in ("thread", "terms", "fingerprint")]
    windows = np.split(vectors(ordered["vector"], dimension=dimension), starts[1:])
    rows = zip(keys.tolist(), to_records(first), windows, *columns, strict=True)
    return [
        StoredMemory(key, record, thread or 0, np.array(terms, np.uint32), own, fingerprint)
        for key, record, own, thread, terms, fingerprint in rows
    ]


def to_records(table: pa.Table) -> list[MemoryRecord]:
    """Read memories from rows.

    Raises:
        StoreError: A row was damaged since it was written.
    """
    try:
        return _read_records(table)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise StoreError(
            f"a row of memories.lance is damaged ({error}). `ekphory doctor --verify` names the "
            "memory and the file, and `ekphory restore` brings a backup back."
        ) from error


def _read_records(table: pa.Table) -> list[MemoryRecord]:
    if RECORD in table.column_names:
        return [decode_record(text) for text in table[RECORD].to_pylist()]
    columns = {name: table[name].to_pylist() for name in RECORD_COLUMNS if name != "metadata"}
    for name in _MOMENTS:
        # Arrow gives zoneinfo's UTC, which is the same moment but another object.
        columns[name] = [moment and moment.astimezone(UTC) for moment in columns[name]]
    columns["metadata"] = list(map(decode_metadata, table["metadata"].to_pylist()))
    return [
        MemoryRecord(**{name: values[row] for name, values in columns.items()})
        for row in range(table.num_rows)
    ]


def to_records_by_key(table: pa.Table) -> dict[int, MemoryRecord]:
    """Read memories from rows, by key."""
    return dict(zip(table["key"].to_pylist(), to_records(table), strict=True))


def microseconds(column: pa.ChunkedArray, *, missing: int) -> IntArray:
    """Return a column of moments as microseconds since 1970."""
    return integers(column.cast(pa.timestamp("us")).cast(pa.int64()), missing=missing)


def integers(column: pa.ChunkedArray, *, missing: int) -> IntArray:
    """Return a column of integers, with a value for those that are missing."""
    return np.asarray(column.fill_null(missing).to_numpy(), np.int64)


def vectors(column: pa.ChunkedArray, *, dimension: int) -> NDArray[np.float32]:
    """Return a column of vectors as a matrix, shape (rows, dimension)."""
    flat = column.combine_chunks().flatten()
    return np.asarray(flat.to_numpy(zero_copy_only=False), np.float32).reshape(-1, dimension)


def plain_values(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column as texts, numbers or microseconds; a text that is missing is empty."""
    if pa.types.is_timestamp(column.type):
        return microseconds(column, missing=0)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        # Each name is held once, however many memories have it.
        coded = column.fill_null("").combine_chunks().dictionary_encode()
        names = np.array([*coded.dictionary.to_pylist(), ""], object)
        return np.asarray(names[coded.indices.to_numpy()], object)
    return np.asarray(column.to_numpy())


# Row ids.

UNKNOWN = -1


def look_up(keys: IntArray, values: IntArray, wanted: IntArray) -> IntArray:
    """Return the value of each wanted key, `UNKNOWN` for one that is not among the sorted keys."""
    if len(keys) == 0:
        return np.full(len(wanted), UNKNOWN, np.int64)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], UNKNOWN)


class RowIds:
    """Lance's row id by our key and back, for the rows that were read so far.

    A row id stays valid while files are merged, but not when the table is rewritten, so what is
    read through it must be checked against its key.
    """

    def __init__(self) -> None:
        self._keys = np.empty(0, np.int64)
        self._rows = np.empty(0, np.int64)
        self._ascending_rows = np.empty(0, np.int64)
        self._their_keys = np.empty(0, np.int64)
        self._guard = threading.Lock()

    def note(self, keys: IntArray, rows: IntArray) -> None:
        """Remember the row ids of these keys, in place of older ones."""
        with self._guard:
            merged_keys = np.concatenate([keys, self._keys])
            merged_rows = np.concatenate([rows, self._rows])
            self._keys, first = np.unique(merged_keys, return_index=True)
            self._rows = merged_rows[first]
            by_row = np.argsort(self._rows, kind="stable")
            self._ascending_rows, self._their_keys = self._rows[by_row], self._keys[by_row]

    def of(self, keys: IntArray) -> IntArray:
        """Return the row ids, `UNKNOWN` for keys that were not read yet."""
        with self._guard:
            return look_up(self._keys, self._rows, keys)

    def keys_of(self, rows: IntArray) -> IntArray:
        """Return the keys that lie at these row ids, `UNKNOWN` for rows that were not read yet."""
        with self._guard:
            return look_up(self._ascending_rows, self._their_keys, rows)


# What ranking needs of every memory in a scope.

_COLUMNS = "key thread sequence at expires_at importance pool type terms windows".split()


def scan_columns(identity: StoreIdentity) -> list[str]:
    """Name the columns that `to_scope_columns` reads from a table of this identity."""
    return [*_COLUMNS, *marks(identity)]


def to_scope_columns(table: pa.Table) -> ScopeColumns:
    """Read rows with `scan_columns`, in their order."""
    terms = table["terms"].combine_chunks()
    return ScopeColumns(
        key=integers(table["key"], missing=0),
        thread=integers(table["thread"], missing=0),
        sequence=integers(table["sequence"], missing=0),
        at=microseconds(table["at"], missing=0),
        expires_at=microseconds(table["expires_at"], missing=NEVER),
        importance=np.asarray(table["importance"].to_numpy(), np.float32),
        # Earlier tables do not tell, and then every importance counts, as it did.
        importance_given=np.asarray(table[IMPORTANCE_GIVEN].to_numpy(), np.bool_)
        if IMPORTANCE_GIVEN in table.column_names
        else np.ones(table.num_rows, np.bool_),
        pool=np.array(table["pool"].to_pylist(), np.str_),
        type=np.array(table["type"].to_pylist(), np.str_),
        terms=np.asarray(terms.flatten().to_numpy(zero_copy_only=False), np.uint32),
        term_counts=np.asarray(pa.compute.list_value_length(terms), np.int32),
    )


# Vectors, one for each window of a memory's text.


def keyed_vectors(table: pa.Table, *, dimension: int) -> KeyedVectors:
    """Read the columns key and vector, in the order of the rows."""
    return KeyedVectors(
        integers(table["key"], missing=0), vectors(table["vector"], dimension=dimension)
    )


def gather_vectors(
    batches: Iterable[pa.RecordBatch], *, into: NDArray[np.floating]
) -> KeyedVectors:
    """Read vectors batch by batch into their final place, so that memory holds them once.

    Args:
        batches: Rows with the columns key, passage and vector.
        into: Where the vectors go, shape (rows to read at the most, dimension).

    Returns:
        The vectors by key, those of one memory in the order of its windows.
    """
    total, dimension = into.shape
    order = np.empty((total, 2), np.int64)
    filled = 0
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        end = min(filled + batch.num_rows, total)
        order[filled:end, 0] = integers(rows["key"], missing=0)[: end - filled]
        order[filled:end, 1] = integers(rows["passage"], missing=0)[: end - filled]
        read = vectors(rows["vector"], dimension=dimension)
        into[filled:end] = read[: end - filled]
        filled = end
    ranks = np.lexsort((order[:filled, 1], order[:filled, 0]))
    if np.array_equal(ranks, np.arange(total)):
        return KeyedVectors(order[:, 0], into)
    return KeyedVectors(order[ranks, 0], into[ranks])


# Takes: reading by row id costs the same however many files there are.

Take = Callable[[list[int], list[str]], pa.Table]
"""Reads some columns of the rows with these row ids."""

# Beyond this many rows one scan is cheaper than that many takes.
_MOST_TAKEN = 2000


class LanceTakes:
    """Takes memories whose row ids a scan has shown; the others are left to a scan."""

    def __init__(self, take: Take, identity: StoreIdentity) -> None:
        self._take = take
        self._dimension = identity.embedder.dimension
        self._record_columns = keyed_record_columns(identity)
        self._first_windows = RowIds()
        self._only_windows = RowIds()

    def note(self, scanned: pa.Table) -> None:
        """Remember where the first windows of memories are: columns key, windows and _rowid."""
        keys = integers(scanned["key"], missing=0)
        rows = integers(scanned["_rowid"].cast(pa.int64()), missing=UNKNOWN)
        self._first_windows.note(keys, rows)
        whole = integers(scanned["windows"], missing=0) == 1
        self._only_windows.note(keys[whole], rows[whole])

    def records(self, keys: IntArray) -> dict[int, MemoryRecord]:
        """Read memories whose place is known; some may be gone, or be others by now."""
        rows = self._first_windows.of(keys)
        known = rows[rows != UNKNOWN]
        if len(keys) > _MOST_TAKEN or len(known) == 0:
            return {}
        table = self._take(known.tolist(), self._record_columns)
        wanted = set(keys.tolist())
        found = to_records_by_key(table)
        return {key: record for key, record in found.items() if key in wanted}

    def vectors(self, keys: IntArray) -> KeyedVectors:
        """Read the vectors of memories that are known to have one."""
        rows = self._only_windows.of(keys)
        known = rows[rows != UNKNOWN]
        if not 0 < len(known) <= _MOST_TAKEN:
            empty = np.empty((0, self._dimension), np.float32)
            return KeyedVectors(np.empty(0, np.int64), empty)
        table = self._take(known.tolist(), ["key", "vector"])
        found = keyed_vectors(table, dimension=self._dimension)
        wanted = np.isin(found.keys, keys)
        return KeyedVectors(found.keys[wanted], found.vectors[wanted])

    def keys(self, rows: IntArray) -> IntArray:
        """Return the keys of the memories at these row ids; those that are gone are left out."""
        keys = self._first_windows.keys_of(rows)
        unknown = rows[keys == UNKNOWN]
        if len(unknown) == 0:
            return keys
        table = self._take(unknown.tolist(), ["key"])
        return np.append(keys[keys != UNKNOWN], integers(table["key"], missing=0))
