"""The store on LanceDB: rows in one Lance table, in a directory or on object storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import lancedb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.errors import InvalidInput
from recollect.filters.lance_sql import to_lance_sql
from recollect.filters.tree import And, Field, Filter, In
from recollect.store import lance_schema
from recollect.store.allocator import bound_memory
from recollect.store.lance_errors import read_anew, told
from recollect.store.lance_index import VectorIndex
from recollect.store.lance_rows import UNKNOWN, RowIds
from recollect.store.lance_upkeep import STABLE_ROW_IDS, Upkeep
from recollect.store.owner import OWNER_FIELDS
from recollect.store.store import (
    CURRENT,
    KEYS_A_COMMIT,
    NEVER,
    IntArray,
    KeyedScores,
    KeyedVectors,
    Order,
    Presence,
    ScopeColumns,
    StoredMemory,
    StoreHealth,
    StoreIdentity,
)
from recollect.types import MemoryRecord

TABLE = "memories"

Name = TypeVar("Name", int, str)
Result = TypeVar("Result")
_FIRST_WINDOW = "passage = 0"
_SCAN_COLUMNS = [
    "key",
    "thread",
    "sequence",
    "at",
    "expires_at",
    "importance",
    "pool",
    "type",
    "terms",
    "windows",
]
_PRESENCE_COLUMNS = ["key", "id", "superseded_by", "fingerprint", "expires_at", *OWNER_FIELDS]
_RECORD_COLUMNS = ["key", *lance_schema.RECORD_COLUMNS]
_ALL_ROWS = 2**31 - 1
_ROWS_READ = 1024
_KEYS_A_QUERY = 2000
_NAMES_A_QUERY = 500
# Beyond this many rows one scan is cheaper than that many takes.
_MOST_TAKEN = 2000


class LanceStore:
    """Keeps memories in a Lance table; safe for several threads, and for readers elsewhere."""

    def __init__(self, uri: str, table: lancedb.table.Table, identity: StoreIdentity) -> None:
        self._uri = uri
        self._table = table
        self._identity = identity
        self._row_ids = RowIds()
        self._only_row_ids = RowIds()
        self._vector_index = VectorIndex(table)
        self._upkeep = Upkeep(uri, table, self._vector_index)

    @classmethod
    def open(cls, uri: str, identity: StoreIdentity) -> LanceStore:
        """Open the store at a Lance URI, or make it there with this identity.

        Raises:
            InvalidInput: The path is a file.
            StoreError: It cannot be opened or made, or was not written by recollect.
        """
        bound_memory()
        if _is_local(uri) and Path(uri).is_file():
            raise InvalidInput("path", uri, "is a file", "Give a directory, new or of recollect")
        with told("open", uri):
            table = _table_at(lancedb.connect(uri), lance_schema.table_schema(identity))
        return cls(uri, table, lance_schema.read_identity(table.schema, where=uri))

    @property
    def identity(self) -> StoreIdentity:
        """What the store was made with."""
        return self._identity

    def version(self) -> int:
        """Give number of the newest Lance version, of whichever process."""
        with told("read", self._uri):
            self._table.checkout_latest()
            return int(self._table.version)

    def next_key(self) -> int:
        """Give the first key of the next commit; Lance never gives a version number twice."""
        return (self.version() + 1) * KEYS_A_COMMIT

    def append(self, memories: Sequence[StoredMemory]) -> None:
        """Write new rows in one Lance commit."""
        with told("write", self._uri):
            self._table.add(lance_schema.to_table(memories, self._schema()))
        self._upkeep.note_commit(len(memories))

    def supersede(self, key: int, history: MemoryRecord, successor: StoredMemory) -> None:
        """Refile one row as history and write its successor, in one Lance commit."""
        stored = self._rows(f"key = {key}", None)
        ordered = stored.sort_by("passage")
        past = StoredMemory(
            key,
            history,
            int(ordered["thread"][0].as_py() or 0),
            np.array(ordered["terms"][0].as_py(), np.uint32),
            lance_schema.vectors(ordered["vector"], dimension=self._dimension),
            ordered["fingerprint"][0].as_py(),
        )
        rows = lance_schema.to_table([past, successor], self._schema())
        with told("write", self._uri):
            merge = self._table.merge_insert(["key", "passage"])
            merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)
        self._upkeep.note_commit(2)

    def delete(self, keys: Sequence[int]) -> None:
        """Hide these memories."""
        for chunk in _chunks(list(keys)):
            with told("write", self._uri):
                self._table.delete(f"key IN ({_listed(chunk)})")
            self._upkeep.note_commit(0)

    def purge(self) -> None:
        """Rewrite the whole table without its deleted rows, and drop all older versions."""
        with told("purge", self._uri):
            self._upkeep.rewrite(self._schema(), TABLE)
        self._row_ids.clear()
        self._only_row_ids.clear()

    def select(
        self, where: Filter, *, order: Order, limit: int | None = None, offset: int = 0
    ) -> list[MemoryRecord]:
        """Read whole memories."""
        found = self._rows(self._condition(where), ["key", "at"])
        direction = "descending" if order == "newest" else "ascending"
        sort_keys = [("key", "ascending")]
        if order != "written":
            sort_keys = [("at", direction), ("key", direction)]
        end = None if limit is None else offset + limit
        keys = found.sort_by(sort_keys)["key"].to_pylist()[offset:end]
        by_key = self.fetch(keys)
        return [by_key[key] for key in keys if key in by_key]

    def fetch(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Read whole memories by key."""
        found = self._taken(np.array(keys, np.int64)) if len(keys) <= _MOST_TAKEN else {}
        missing = [key for key in keys if key not in found]
        for chunk in _chunks(missing):
            condition = f"{_FIRST_WINDOW} AND key IN ({_listed(chunk)})"
            found |= _by_key(self._rows(condition, _RECORD_COLUMNS))
        return found

    def present(
        self, where: Filter, ids: Sequence[str], fingerprints: Sequence[str]
    ) -> list[Presence]:
        """Which of these are stored among the matching memories."""
        named = [
            to_lance_sql(And((CURRENT, In(Field("id"), tuple(chunk)))))
            for chunk in _chunks(list(ids), _NAMES_A_QUERY)
        ]
        # Digests of ours, hexadecimal, so they need no escaping.
        named += [
            f"fingerprint IN ({', '.join(repr(name) for name in chunk)})"
            for chunk in _chunks(list(fingerprints), _NAMES_A_QUERY)
        ]
        condition = self._condition(where)
        found = [entry for one in named for entry in self._present(f"{condition} AND ({one})")]
        # A row may be found by its id and by its fingerprint.
        return list({entry.key: entry for entry in found}.values())

    def _present(self, condition: str) -> list[Presence]:
        table = self._rows(condition, _PRESENCE_COLUMNS)
        return [
            Presence(key, successor or memory_id, fingerprint, owner, int(expires_at))
            for key, memory_id, successor, fingerprint, owner, expires_at in zip(
                table["key"].to_pylist(),
                table["id"].to_pylist(),
                table["superseded_by"].to_pylist(),
                table["fingerprint"].to_pylist(),
                zip(*(table[name].to_pylist() for name in OWNER_FIELDS), strict=True),
                lance_schema.microseconds(table["expires_at"], missing=NEVER),
                strict=True,
            )
        ]

    def keys(self, where: Filter) -> IntArray:
        """Keys of the matching memories."""
        table = self._rows(self._condition(where), ["key"])
        return np.sort(lance_schema.integers(table["key"], missing=0))

    def count(self, where: Filter) -> int:
        """How many memories match."""
        condition = self._condition(where)
        return int(self._read(lambda: self._table.count_rows(condition)))

    def scan(self, where: Filter, *, after_key: int = 0) -> ScopeColumns:
        """Read the ranking columns."""
        condition = f"{self._condition(And((where, CURRENT)))} AND key > {after_key}"
        table = self._rows(condition, _SCAN_COLUMNS).sort_by("key")
        self._note_row_ids(table)
        terms = table["terms"].combine_chunks()
        return ScopeColumns(
            key=lance_schema.integers(table["key"], missing=0),
            thread=lance_schema.integers(table["thread"], missing=0),
            sequence=lance_schema.integers(table["sequence"], missing=0),
            at=lance_schema.microseconds(table["at"], missing=0),
            expires_at=lance_schema.microseconds(table["expires_at"], missing=NEVER),
            importance=np.asarray(table["importance"].to_numpy(), np.float32),
            pool=np.array(table["pool"].to_pylist(), np.str_),
            type=np.array(table["type"].to_pylist(), np.str_),
            terms=np.asarray(terms.flatten().to_numpy(zero_copy_only=False), np.uint32),
            term_counts=np.asarray(pa.compute.list_value_length(terms), np.int32),
        )

    def scan_vectors(self, where: Filter, *, after_key: int = 0) -> KeyedVectors:
        """Read the vectors of the current matching memories."""
        # A window's row repeats the scope and history columns, so the same condition finds it.
        condition = f"{to_lance_sql(And((where, CURRENT)))} AND key > {after_key}"
        return self._read(lambda: self._streamed_vectors(condition))

    def vectors_of(self, keys: Sequence[int]) -> KeyedVectors:
        """Read the vectors of some memories."""
        parts = [self._taken_vectors(np.array(keys, np.int64))]
        missing = np.setdiff1d(np.array(keys, np.int64), parts[0].keys)
        for chunk in _chunks(missing.tolist()):
            rows = self._rows(f"key IN ({_listed(chunk)})", ["key", "vector"])
            parts.append(self._keyed_vectors(rows))
        empty = np.empty((0, self._dimension), np.float32)
        return KeyedVectors(
            np.concatenate([np.empty(0, np.int64), *(part.keys for part in parts)]),
            np.concatenate([empty, *(part.vectors for part in parts)]),
        )

    def nearest(self, where: Filter, vector: NDArray[np.float32], *, limit: int) -> KeyedScores:
        """Find the rows with the largest dot product, by index or by a scan."""
        condition = None if where == And(()) else to_lance_sql(where)
        table = self._read(lambda: self._vector_index.nearest(vector, condition, limit=limit))
        distances = np.asarray(table["_distance"].to_numpy(), np.float32)
        return KeyedScores(lance_schema.integers(table["key"], missing=0), 1 - distances)

    def maintain(self) -> None:
        """Do what upkeep is due."""
        with told("maintain", self._uri):
            self._upkeep.run_if_due()

    def tidy(self) -> None:
        """Do what upkeep pays in a quiet moment."""
        with told("maintain", self._uri):
            self._upkeep.run_if_it_pays()

    def index_is_due(self) -> bool:
        """Whether a large scope has outgrown its index."""
        return self._vector_index.wanted

    def build_index(self) -> None:
        """Build the vector index, if a large scope was searched without one."""
        with told("index", self._uri):
            self._upkeep.build_index_if_due()

    def repair(self) -> None:
        """Do all upkeep now."""
        with told("repair", self._uri):
            self._upkeep.run_all()

    def health(self) -> StoreHealth:
        """Measure the state of the store."""
        return self._read(self._upkeep.health)

    def close(self) -> None:
        """Nothing to release: Lance holds no lock and no open transaction."""

    @property
    def _dimension(self) -> int:
        return self._identity.embedder.dimension

    def _schema(self) -> pa.Schema:
        return lance_schema.table_schema(self._identity)

    def _condition(self, where: Filter) -> str:
        return f"{_FIRST_WINDOW} AND ({to_lance_sql(where)})"

    def _rows(self, condition: str | None, columns: list[str] | None) -> pa.Table:
        query = self._table.search().limit(_ALL_ROWS).with_row_id(columns is _SCAN_COLUMNS)
        if condition is not None:
            query = query.where(condition, prefilter=True)
        if columns is not None:
            query = query.select(columns)
        return self._read(query.to_arrow)

    def _read(self, read: Callable[[], Result]) -> Result:
        return read_anew(self._uri, read, renew=self._table.checkout_latest)

    def _note_row_ids(self, scanned: pa.Table) -> None:
        keys = lance_schema.integers(scanned["key"], missing=0)
        rows = lance_schema.integers(scanned["_rowid"].cast(pa.int64()), missing=UNKNOWN)
        self._row_ids.note(keys, rows)
        whole = lance_schema.integers(scanned["windows"], missing=0) == 1
        self._only_row_ids.note(keys[whole], rows[whole])

    def _taken_vectors(self, keys: IntArray) -> KeyedVectors:
        """Read the vectors of memories that are known to have one."""
        rows = self._only_row_ids.of(keys)
        known = rows[rows != UNKNOWN]
        if not 0 < len(known) <= _MOST_TAKEN:
            empty = np.empty((0, self._dimension), np.float32)
            return KeyedVectors(np.empty(0, np.int64), empty)
        take = self._table.take_row_ids(known.tolist()).select(["key", "vector"])
        found = self._keyed_vectors(self._read(take.to_arrow))
        wanted = np.isin(found.keys, keys)
        return KeyedVectors(found.keys[wanted], found.vectors[wanted])

    def _taken(self, keys: IntArray) -> dict[int, MemoryRecord]:
        """Read the rows whose row ids are known; some may be gone, or be others by now."""
        rows = self._row_ids.of(keys)
        known = rows[rows != UNKNOWN]
        if len(known) == 0:
            return {}
        take = self._table.take_row_ids(known.tolist()).select(_RECORD_COLUMNS)
        table = self._read(take.to_arrow)
        wanted = set(keys.tolist())
        return {key: record for key, record in _by_key(table).items() if key in wanted}

    def _streamed_vectors(self, condition: str) -> KeyedVectors:
        """Read vectors batch by batch into their final place, so that memory holds them once."""
        total = self._table.count_rows(condition)
        order = np.empty((total, 2), np.int64)
        vectors = np.empty((total, self._dimension), np.float32)
        query = self._table.search().where(condition, prefilter=True).limit(_ALL_ROWS)
        filled = 0
        for batch in query.select(["key", "passage", "vector"]).to_batches(_ROWS_READ):
            rows = pa.Table.from_batches([batch])
            end = min(filled + batch.num_rows, total)
            order[filled:end, 0] = lance_schema.integers(rows["key"], missing=0)[: end - filled]
            order[filled:end, 1] = lance_schema.integers(rows["passage"], missing=0)[: end - filled]
            read = lance_schema.vectors(rows["vector"], dimension=self._dimension)
            vectors[filled:end] = read[: end - filled]
            filled = end
        ranks = np.lexsort((order[:filled, 1], order[:filled, 0]))
        if np.array_equal(ranks, np.arange(total)):
            return KeyedVectors(order[:, 0], vectors)
        return KeyedVectors(order[ranks, 0], vectors[ranks])

    def _keyed_vectors(self, table: pa.Table) -> KeyedVectors:
        return KeyedVectors(
            lance_schema.integers(table["key"], missing=0),
            lance_schema.vectors(table["vector"], dimension=self._dimension),
        )


def _table_at(connection: lancedb.DBConnection, schema: pa.Schema) -> lancedb.table.Table:
    if TABLE in connection.list_tables().tables:
        return connection.open_table(TABLE)
    try:
        return connection.create_table(TABLE, schema=schema, storage_options=STABLE_ROW_IDS)
    except ValueError:
        # Another process made it in between.
        return connection.open_table(TABLE)


def _by_key(table: pa.Table) -> dict[int, MemoryRecord]:
    return dict(zip(table["key"].to_pylist(), lance_schema.to_records(table), strict=True))


def _is_local(uri: str) -> bool:
    return "://" not in uri


def _listed(keys: Sequence[int]) -> str:
    return ", ".join(str(int(key)) for key in keys)


def _chunks(names: list[Name], size: int = _KEYS_A_QUERY) -> Iterator[list[Name]]:
    for start in range(0, len(names), size):
        yield names[start : start + size]
