"""The store on LanceDB: rows in one Lance table, in a directory or on object storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.query import LanceQueryBuilder
from numpy.typing import NDArray

from ekphory.errors import InvalidInput, StoreError
from ekphory.filters.lance_sql import matches, to_lance_sql
from ekphory.filters.tree import And, Field, Filter, In
from ekphory.models.embedder import EmbedderIdentity, FloatMatrix
from ekphory.store import blocks, lance_rows, lance_table, protocol
from ekphory.store.checks import verify_rows
from ekphory.store.kept_arrays import KeptArrays
from ekphory.store.lance_index import VectorIndex
from ekphory.store.lance_named import MOST_IDS, Keyed, NamedMemories, find_named_ids
from ekphory.store.lance_presence import LancePresence
from ekphory.store.lance_upkeep import WHEN_BUSY, WHEN_QUIET, Upkeep, open_table
from ekphory.store.lance_vectors import VectorsBeside, drop_others, list_vectors_beside
from ekphory.types import MemoryRecord, Progress

# The store.

TABLE = "memories"
TABLE_FOLDER = f"{TABLE}.lance"

Result = TypeVar("Result")
_FIRST_WINDOW = "passage = 0"
_UNEMBEDDED = f"{_FIRST_WINDOW} AND windows = 0"
_ROWS_READ = 1024
_KEYS_A_QUERY = 2000
_SORT_KEYS: dict[protocol.Order, list[tuple[str, str]]] = {
    "written": [("key", "ascending")],
    "newest": [("at", "descending"), ("key", "descending")],
    "oldest": [("at", "ascending"), ("key", "ascending")],
}


class LanceStore:
    """Keeps memories in a Lance table; safe for several threads, and for readers elsewhere.

    Attributes:
        identity: What the store was made with.
        connection: To its place, for what else lies there.
    """

    def __init__(
        self,
        uri: str,
        table: lancedb.table.Table,
        identity: protocol.StoreIdentity,
        *,
        connection: lancedb.db.DBConnection,
        sole_writer: lance_table.SoleWriter = lance_table.never,
    ) -> None:
        self._uri = uri
        self.connection = connection
        self._table = table
        self._adopt(identity)
        commits = lance_table.CommitFiles(lance_table.commits_folder(uri, TABLE))
        self._version = lance_table.NewestVersion(
            uri, table, commits=commits, on_change=self._look_anew, sole_writer=sole_writer
        )
        self._presence = LancePresence(self._rows)
        self._recent = blocks.RecentWrites()
        self._named = NamedMemories()
        self._vector_index = VectorIndex(table)
        unmerged = commits.count()
        self._upkeep = Upkeep(uri, table, self._vector_index, commits=unmerged)
        self._note = None if lance_table.is_remote(uri) else _note_of(uri)
        self._unnoted: int | None = None

    @classmethod
    def open(
        cls,
        uri: str,
        identity: protocol.StoreIdentity,
        *,
        sole_writer: lance_table.SoleWriter = lance_table.never,
    ) -> LanceStore:
        """Open the store at a Lance URI, or make it there with this identity.

        Args:
            uri: Where it is.
            identity: What it is made with.
            sole_writer: As `NewestVersion` takes it.

        Raises:
            InvalidInput: The path is a file.
            StoreError: It cannot be opened or made, or was not written by ekphory.
        """
        lance_table.bound_memory()
        if not lance_table.is_remote(uri) and Path(uri).is_file():
            raise InvalidInput("path", uri, "is a file", "Give a directory, new or of ekphory")
        with lance_table.translate_lance_errors("open", uri):
            if not lance_table.is_remote(uri):
                _note_of(uri).check()
            connection = lance_table.connect(uri)
            table = open_table(connection, uri, TABLE, lance_rows.table_schema(identity))
            found = lance_rows.read_identity(table.schema, where=uri)
            return cls(uri, table, found, connection=connection, sole_writer=sole_writer)

    def settle_reads(self) -> None:
        """Wait until no thread is looking for a newer version any more."""
        self._version.get()

    @lance_table.with_lance_errors_translated("lock")
    def fence(self) -> None:
        """Make what others have begun to write fail, and read what they had finished."""
        lance_table.fence_table(self._uri, TABLE)
        self._table.checkout_latest()
        self._note_written([], version=int(self._table.version))
        self._recent.forget()
        self._named.forget()

    def version(self) -> int:
        """Return the number of the newest Lance version, of whichever process."""
        return self._version.get()

    @lance_table.with_lance_errors_translated("write")
    def append(self, memories: Sequence[protocol.StoredMemory]) -> None:
        """Write new rows in one Lance commit."""
        schema = lance_rows.leave_out_empty_columns(memories, self._schema)
        version = int(self._table.add(lance_rows.to_table(memories, schema)).version)
        added = {memory.key: memory.record for memory in memories}
        before = self._note_written(memories, added=added, version=version)
        # An earlier schema does not keep all that was given.
        if self.identity.schema_version == protocol.SCHEMA_VERSION:
            self._recent.note(memories, before=before, after=version)
        self._unnoted = version
        self._upkeep.note_commit(len(memories))

    @lance_table.with_lance_errors_translated("write")
    def supersede(self, key: int, history: MemoryRecord, successor: protocol.StoredMemory) -> None:
        """Refile one row as history and write its successor, in one Lance commit."""
        stored = lance_rows.to_stored(self._rows(f"key = {key}", None), dimension=self._dimension)
        past = replace(stored[0], record=history)
        rows = lance_rows.to_table([past, successor], self._schema)
        merge = self._table.merge_insert(["key", "passage"])
        merged = merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)
        added = {key: history, successor.key: successor.record}
        self._note_written([successor], gone=[key], added=added, version=int(merged.version))
        self._recent.forget()
        self._unnoted = int(merged.version)
        self._upkeep.note_commit(2)

    @lance_table.with_lance_errors_translated("write")
    def delete(self, keys: Sequence[int]) -> None:
        """Hide these memories."""
        for start in range(0, len(keys), _KEYS_A_QUERY):
            hidden = list(keys[start : start + _KEYS_A_QUERY])
            self._recent.forget()
            deleted = self._table.delete(_condition_of_keys(hidden))
            self._note_written([], gone=hidden, version=int(deleted.version))
            self._unnoted = int(deleted.version)
            self._upkeep.note_commit(0)

    @lance_table.with_lance_errors_translated("purge")
    def purge(self) -> None:
        """Rewrite the whole table without its deleted rows, and drop all older versions."""
        self.version()
        self._drop_kept_arrays()
        self._rewrite(self.identity)
        living = lance_rows.integers(self._rows(_FIRST_WINDOW, ["key"])["key"], missing=0)
        known = list(list_vectors_beside(self._uri))
        for beside in known:
            beside.keep_only(living)
        drop_others(self._uri, keep={beside.embedder for beside in known})

    @lance_table.with_lance_errors_translated("read")
    def select(
        self, where: Filter, *, order: protocol.Order, limit: int | None = None, offset: int = 0
    ) -> list[MemoryRecord]:
        """Read whole memories."""
        named = self._find_named(where)
        if named is not None:
            return _sort(named, order)[offset:][:limit]
        condition = self._condition(where)
        if limit is None and offset == 0:
            rows = self._rows(condition, list({*self._record_columns(), "at"}))
            return lance_rows.to_records(rows.sort_by(_SORT_KEYS[order]))
        while True:
            rows = self._rows(condition, ["key", "at"]).sort_by(_SORT_KEYS[order])
            keys = rows["key"].to_pylist()[offset:][:limit]
            by_key = self._with_keys(keys, condition)
            # What was changed or deleted between the two reads is missing, and the page another.
            if len(by_key) == len(keys):
                return [by_key[key] for key in keys]

    @lance_table.with_lance_errors_translated("read")
    def fetch(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Read whole memories by key."""
        found = self._recent.records(keys, newest=self._version.seen)
        found |= self._named.at(keys, version=self._version.seen)
        found |= self._takes.records(np.array([key for key in keys if key not in found], np.int64))
        return found | self._with_keys([key for key in keys if key not in found], _FIRST_WINDOW)

    @lance_table.with_lance_errors_translated("read")
    def present(
        self, where: Filter, ids: Sequence[str], fingerprints: Sequence[str]
    ) -> list[protocol.Presence]:
        """Return which of these are stored among the matching memories."""
        return self._presence.find(where, (ids, fingerprints), version=self._version.seen)

    @lance_table.with_lance_errors_translated("read")
    def keys(self, where: Filter) -> protocol.IntArray:
        """Return the keys of the matching memories."""
        named = self._find_named(where)
        if named is not None:
            return np.array(sorted(named), np.int64)
        table = self._rows(self._condition(where), ["key"])
        return np.sort(lance_rows.integers(table["key"], missing=0))

    @lance_table.with_lance_errors_translated("read")
    def count(self, where: Filter) -> int:
        """Return how many memories match."""
        named = self._find_named(where)
        if named is not None:
            return len(named)
        condition = self._condition(where)
        return int(self._read(lambda: self._table.count_rows(condition)))

    def growth_since(self, version: int) -> protocol.Growth | None:
        """Return what this process added since, if nobody changed anything else."""
        return self._recent.since(version, newest=self._version.seen)

    @lance_table.with_lance_errors_translated("read")
    def scan(self, where: Filter, *, after_key: int = 0) -> protocol.ScopeColumns:
        """Read the ranking columns."""
        condition = f"{self._condition(And((where, protocol.CURRENT)))} AND key > {after_key}"
        query = self._query(condition, self._scan_columns).with_row_id(True)
        table = self._read(query.to_arrow).sort_by("key")
        self._takes.note(table)
        return lance_rows.to_scope_columns(table)

    @lance_table.with_lance_errors_translated("read")
    def scan_fields(self, where: Filter, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read some fields of the current matching memories."""
        table = self._rows(self._condition(And((where, protocol.CURRENT))), ["key", *names])
        table = table.sort_by("key")
        return {name: lance_rows.plain_values(table[name]) for name in ("key", *names)}

    @lance_table.with_lance_errors_translated("read")
    def scan_vectors(
        self, where: Filter, *, after_key: int = 0, precision: protocol.Precision = np.float32
    ) -> protocol.KeyedVectors:
        """Read the vectors of the current matching memories."""
        # A window's row repeats the scope and history columns, so the same condition finds it.
        condition = f"{to_lance_sql(And((where, protocol.CURRENT)))} AND key > {after_key}"
        return self._read(lambda: self._stream_vectors(condition, precision))

    @lance_table.with_lance_errors_translated("read")
    def scan_records(self, where: Filter, *, after_key: int = 0) -> blocks.ArrowRecords:
        """Read the current matching memories, whole."""
        condition = f"{self._condition(And((where, protocol.CURRENT)))} AND key > {after_key}"
        return blocks.ArrowRecords.of(self._rows(condition, self._record_columns()))

    @lance_table.with_lance_errors_translated("read")
    def scan_whole(self, where: Filter, *, room: int) -> protocol.WholeScope | None:
        """Read the current matching memories with their vectors, on object storage alone."""
        if not lance_table.is_remote(self._uri) or not blocks.can_read_at_once():
            return None
        size: Any = self._table.stats()
        nbytes = int(size["total_bytes"])
        if nbytes > room or int(size["num_rows"]) > protocol.RESIDENT_ROWS:
            return None
        condition, records = to_lance_sql(And((where, protocol.CURRENT))), self._record_columns()
        columns = blocks.name_columns(self._scan_columns, records)
        uri = f"{self._uri}/{TABLE}.lance"
        rows = self._read(
            lambda: blocks.read_at_once(
                uri, condition, columns, version=int(self._table.version), nbytes=nbytes
            )
        )
        self._check_vectors(rows.schema)
        memories = blocks.first_windows(rows)
        self._takes.note(memories)
        return blocks.to_whole_scope(rows, memories, records=records)

    @lance_table.with_lance_errors_translated("read")
    def vectors_of(self, keys: Sequence[int]) -> protocol.KeyedVectors:
        """Read the vectors of some memories."""
        parts = [self._takes.vectors(np.array(keys, np.int64))]
        missing = np.setdiff1d(np.array(keys, np.int64), parts[0].keys)
        for condition in _key_conditions(missing.tolist()):
            rows = self._rows(condition, ["key", "passage", "vector"])
            self._check_vectors(rows.schema)
            windows = rows.sort_by([("key", "ascending"), ("passage", "ascending")])
            dimension = rows.schema.field("vector").type.list_size
            parts.append(lance_rows.keyed_vectors(windows, dimension=dimension))
        return protocol.KeyedVectors(
            np.concatenate([part.keys for part in parts]),
            np.concatenate([part.vectors for part in parts]),
        )

    @lance_table.with_lance_errors_translated("read")
    def nearest(
        self, where: Filter, vector: NDArray[np.float32], *, limit: int
    ) -> protocol.IntArray:
        """Find the rows with the largest dot product, by index or by a scan."""
        condition = None if where == And(()) else to_lance_sql(where)
        try:
            table = self._read(lambda: self._vector_index.nearest(vector, condition, limit=limit))
        except StoreError:
            self._check_vectors(self._table.schema)
            raise
        return self._takes.keys(np.sort(table["_rowid"].to_numpy()).astype(np.int64))

    @lance_table.with_lance_errors_translated("read")
    def lacking(self, embedder: EmbedderIdentity) -> protocol.IntArray:
        """Return the keys of all memories without a vector by that model."""
        condition = _UNEMBEDDED if embedder == self.identity.embedder else _FIRST_WINDOW
        keys = lance_rows.integers(self._rows(condition, ["key"])["key"], missing=0)
        return np.setdiff1d(keys, VectorsBeside(self._uri, embedder).keys)

    @lance_table.with_lance_errors_translated("write")
    def keep_vectors(self, embedder: EmbedderIdentity, vectors: Mapping[int, FloatMatrix]) -> None:
        """Keep vectors of a model beside the store's own."""
        living: set[int] = set()
        for condition in _key_conditions(list(vectors)):
            living |= set(self._rows(condition, ["key"])["key"].to_pylist())
        kept = {key: windows for key, windows in vectors.items() if key in living}
        if kept:
            VectorsBeside(self._uri, embedder).add(kept)

    @lance_table.with_lance_errors_translated("re-embed")
    def switch_vectors(self, embedder: EmbedderIdentity) -> None:
        """Put the vectors that are kept beside in the place of the store's own."""
        self.version()
        known, beside = self.identity, VectorsBeside(self._uri, embedder)
        if embedder == known.embedder and not len(beside.keys):
            return
        identity = replace(known, embedder=embedder, generation=known.generation + 1)
        if embedder != known.embedder:
            identity = replace(identity, previous=known.embedder)
            query = self._query("passage > 0 OR windows > 0", ["key", "passage", "vector"])
            VectorsBeside(self._uri, known.embedder).replace(query.to_batches(_ROWS_READ))
        self._rewrite(identity, beside)
        drop_others(self._uri, keep={identity.previous})

    @lance_table.with_lance_errors_translated("write")
    def drop_previous_vectors(self) -> None:
        """Remove the vectors of the model before."""
        self.version()
        beside = {each.embedder for each in list_vectors_beside(self._uri)}
        drop_others(self._uri, keep=beside - {self.identity.embedder, self.identity.previous})

    def note_newest(self) -> None:
        """Note what was written last, unless that is noted."""
        version, self._unnoted = self._unnoted, None
        if self._note is not None and version is not None:
            self._note.write(version)

    def upkeep_is_due(self) -> bool:
        """Return whether many files may have gathered."""
        return self._upkeep.may_be_due

    @lance_table.with_lance_errors_translated("maintain")
    def maintain(self) -> None:
        """Do what upkeep is due."""
        self._rearrange(WHEN_BUSY)

    @lance_table.with_lance_errors_translated("maintain")
    def tidy(self) -> None:
        """Do what upkeep pays in a quiet moment."""
        self._rearrange(WHEN_QUIET)

    def index_is_due(self) -> bool:
        """Return whether a large scope has outgrown its index."""
        return self._vector_index.wanted

    @lance_table.with_lance_errors_translated("index")
    def build_index(self) -> None:
        """Build the vector index, if a large scope was searched without one."""
        self._upkeep.build_index_if_due()

    @lance_table.with_lance_errors_translated("repair")
    def repair(self) -> None:
        """Do all upkeep now."""
        self.version()
        self._drop_kept_arrays()
        has_checksums = lance_rows.CHECKSUM in self._table.schema.names
        if not has_checksums or self._table.count_rows(f"{lance_rows.CHECKSUM} IS NULL"):
            self._rewrite(self.identity)
        else:
            self._upkeep.run_all()
            self._note_rearranged()

    @lance_table.with_lance_errors_translated("read")
    def health(self) -> protocol.StoreHealth:
        """Measure the state of the store."""
        health = self._read(self._upkeep.health)
        self.version()
        own, previous = self.identity.embedder, self.identity.previous
        beside = {each.embedder for each in list_vectors_beside(self._uri)} - {own}
        return replace(
            health,
            embedder=str(own),
            unembedded=int(self._table.count_rows(_UNEMBEDDED)),
            previous_embedder=str(previous) if previous in beside else None,
            next_embedders=tuple(sorted(str(each) for each in beside - {previous})),
        )

    @lance_table.with_lance_errors_translated("verify")
    def verify(self, on_progress: Progress) -> protocol.Verification:
        """Read every row, whatever damage there is, and compare it with its checksum."""
        if self._note is not None:
            self._note.check()
        self._table.checkout_latest()
        query = (
            self._table.search().limit(lance_table.ALL_ROWS).select(["_rowaddr"]).with_row_id(True)
        )
        return verify_rows(
            self._read(query.to_arrow),
            self._take,
            dimension=self._dimension,
            columns=self._table.schema.names,
            files={} if self._note is None else self._note.data_files(int(self._table.version)),
            on_progress=on_progress,
        )

    def close(self) -> None:
        """Nothing to release: Lance holds no lock and no open transaction."""

    @property
    def _dimension(self) -> int:
        return self.identity.embedder.dimension

    def _condition(self, where: Filter) -> str:
        return f"{_FIRST_WINDOW} AND ({to_lance_sql(where)})"

    def _record_columns(self) -> list[str]:
        return lance_rows.keyed_record_columns(self.identity)

    def _with_keys(self, keys: list[int], condition: str) -> dict[int, MemoryRecord]:
        found: dict[int, MemoryRecord] = {}
        for is_wanted in _key_conditions(keys):
            rows = self._rows(f"{condition} AND {is_wanted}", self._record_columns())
            found |= lance_rows.to_records_by_key(rows)
        return found

    def _find_named(self, where: Filter) -> Keyed | None:
        """Return the matching memories, by key; None where the condition names no ids."""
        ids = find_named_ids(where)
        if ids is None or len(ids) > MOST_IDS:
            return None
        found = self._named.find(ids, version=self._version.seen, read=self._read_named)
        return {key: record for key, record in found.items() if matches(where, record)}

    def _read_named(self, ids: list[str]) -> Keyed:
        possible = self._presence.drop_absent(ids, version=self._version.seen)
        if not possible:
            return {}
        condition = self._condition(In(Field("id"), tuple(possible)))
        return lance_rows.to_records_by_key(self._rows(condition, self._record_columns()))

    def _rows(self, condition: str, columns: list[str] | None) -> pa.Table:
        return self._read(self._query(condition, columns).to_arrow)

    def _query(self, condition: str, columns: list[str] | None) -> LanceQueryBuilder:
        query = self._table.search().limit(lance_table.ALL_ROWS).where(condition, prefilter=True)
        return query if columns is None else query.select(columns)

    def _read(self, read: Callable[[], Result]) -> Result:
        return lance_table.read_anew(self._uri, read, renew=self._table.checkout_latest)

    def _note_written(
        self,
        memories: Sequence[protocol.StoredMemory],
        *,
        version: int,
        gone: Sequence[int] = (),
        added: Mapping[int, MemoryRecord] | None = None,
    ) -> int:
        before = self._version.note_own(version)
        self._presence.note(memories, before=before, after=version)
        self._named.note(gone=gone, added=added or {}, before=before, after=version)
        if self.identity.schema_version != protocol.SCHEMA_VERSION:
            self._named.forget()
        return before

    def _rearrange(self, when: tuple[int, float]) -> None:
        before = self._version.get()
        if self._upkeep.merge_after(*when):
            self._note_rearranged()
            after = int(self._table.version)
            self._version.note_own(after)
            self._recent.note_rearranged(before=before, after=after)
            self._named.note_rearranged(before=before, after=after)
            self._presence.note_rearranged(before=before, after=after)

    def _rewrite(
        self, identity: protocol.StoreIdentity, beside: VectorsBeside | None = None
    ) -> None:
        """Write all living rows anew, with the vectors of `beside` where there are some.

        The caller holds the writer's lock and has looked for the newest version since: what others
        have written in between would be lost.
        """
        identity = replace(identity, schema_version=protocol.SCHEMA_VERSION)
        schema = lance_rows.table_schema(identity)
        complete = partial(lance_rows.complete_batch, schema=schema, dimension=self._dimension)
        if beside is not None:
            find = beside.read if identity.embedder == self.identity.embedder else beside.read_all
            complete = partial(lance_rows.replace_vectors, schema=schema, find=find)
        self._recent.forget()
        if lance_table.is_remote(self._uri) and beside is None and identity == self.identity:
            was_indexed = self._upkeep.rewrite_in_place()
        else:
            was_indexed = self._upkeep.rewrite(schema, TABLE, completed=complete)
        if was_indexed and beside is None:
            self._vector_index.build()
        # Other vectors are indexed in the background, since that takes minutes.
        self._vector_index.wanted |= was_indexed and beside is not None
        self._named.forget()
        self._note_rearranged()
        self._adopt(identity)

    def _look_anew(self) -> None:
        """Adopt what another process made of the table."""
        identity = lance_rows.read_identity(self._table.schema, where=self._uri)
        if identity != self.identity:
            self._recent.forget()
            self._adopt(identity)

    def _check_vectors(self, schema: pa.Schema) -> None:
        """Check that vectors which were read are those of the model that is known.

        Raises:
            VectorsReplaced: They are others.
        """
        found, known = lance_rows.read_identity(schema, where=self._uri), self.identity
        if (found.embedder, found.generation) != (known.embedder, known.generation):
            self._table.checkout_latest()
            self._look_anew()
            raise protocol.VectorsReplaced(
                f"{self._uri}: its vectors were replaced. Repeat the search."
            )

    def _adopt(self, identity: protocol.StoreIdentity) -> None:
        self.identity = identity
        self._schema = lance_rows.table_schema(identity)
        self._scan_columns = lance_rows.scan_columns(identity)
        self._takes = lance_rows.LanceTakes(self._take_known, identity)

    def _drop_kept_arrays(self) -> None:
        if not lance_table.is_remote(self._uri):
            KeptArrays(Path(self._uri), table=TABLE_FOLDER).clear()

    def _note_rearranged(self) -> None:
        if self._note is not None:
            self._note.tidy()
            self._note.write(int(self._table.version))

    def _take(self, rows: list[int], columns: list[str]) -> pa.Table:
        query = self._table.take_row_ids(rows).select(columns)
        return self._read(query.to_arrow)

    def _take_known(self, rows: list[int], columns: list[str]) -> pa.Table:
        taken = self._take(rows, columns)
        if "vector" in columns:
            self._check_vectors(taken.schema)
        return taken

    def _stream_vectors(
        self, condition: str, precision: protocol.Precision
    ) -> protocol.KeyedVectors:
        total = self._table.count_rows(condition)
        batches = self._query(condition, ["key", "passage", "vector"]).to_batches(_ROWS_READ)
        self._check_vectors(batches.schema)
        dimension = batches.schema.field("vector").type.list_size
        vectors = np.empty((total, dimension), precision)
        return lance_rows.gather_vectors(batches, into=vectors)


def reserve_root(uri: str, *, shards: int) -> None:
    """Put a table where a store's own would be, so that none is opened there beside the shards.

    Raises:
        StoreError: A store is there.
    """
    with lance_table.translate_lance_errors("make", uri):
        schema = pa.schema([("shard", pa.int64())], metadata={lance_rows.SHARDS: str(shards)})
        there = open_table(lance_table.connect(uri), uri, TABLE, schema)
    if lance_rows.SHARDS.encode() not in (there.schema.metadata or {}):
        raise StoreError(f"{uri}: a store is there already. Choose another place for the shards.")


def _note_of(uri: str) -> lance_table.StateNote:
    return lance_table.StateNote(Path(uri) / f"{TABLE}.lance")


def _key_conditions(keys: list[int]) -> Iterator[str]:
    """Yield conditions that name these keys, so many in each as a query takes well."""
    for start in range(0, len(keys), _KEYS_A_QUERY):
        yield _condition_of_keys(keys[start : start + _KEYS_A_QUERY])


def _condition_of_keys(keys: list[int]) -> str:
    return f"key IN ({', '.join(str(int(key)) for key in keys)})"


def _sort(named: Keyed, order: protocol.Order) -> list[MemoryRecord]:
    if order == "written":
        return [named[key] for key in sorted(named)]
    places = sorted((record.at, key) for key, record in named.items())
    return [named[key] for _, key in (places if order == "oldest" else reversed(places))]
