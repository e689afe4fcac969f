"""Moving a store to other shards: how their number changes, and the embedder.

Decision 0041 tells why it is safe: nobody can write the shards that are moved any more, each of
them is read in one state that the manifest names, and one object, the manifest's next state, is
the switch.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from ekphory.catalog.database import Database, Value
from ekphory.cluster.objects import Objects, find_root, name_place
from ekphory.cluster.shards import (
    LAST,
    Manifest,
    ShardLease,
    Shards,
    check_count,
    check_unserved,
    hold_shard,
    making_tables,
    read_manifest,
    write_manifest,
)
from ekphory.engine import Engine
from ekphory.errors import EmbedderMismatch, StoreError
from ekphory.filters.tree import EVERYTHING
from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.lexical import TERMS_VERSION
from ekphory.store import protocol
from ekphory.store.lance import LanceStore
from ekphory.store.lance_snapshot import LanceSnapshot
from ekphory.store.ledger import Ledger, LedgerEntry, LedgerState
from ekphory.types import Progress, ignore_progress
from ekphory.write import embed_records

_MEMORIES_A_COMMIT = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReport:
    """What a store of shards was moved to.

    Attributes:
        store: URI of the store.
        shards: How many it has.
        embedder: The model that made its vectors.
        memories: How many memories were moved, earlier versions included; 0 where nothing was.
        revisions: How many decisions on what supersedes what.
    """

    store: str
    shards: int
    embedder: str
    memories: int = 0
    revisions: int = 0


def move(
    uri: str,
    embedder: EmbeddingModel,
    *,
    count: int | None = None,
    on_progress: Progress = ignore_progress,
) -> MoveReport:
    """Move all memories to another number of shards, or to vectors of another model.

    Nobody may serve the store meanwhile. If it breaks off, calling it again goes on.

    Args:
        uri: Of the store.
        embedder: What the vectors will be made with; where it is the present one they are copied.
        count: How many shards there will be; None for as many as there are.
        on_progress: Called with how many memories are there, and of how many.

    Raises:
        InvalidInput: The number cannot be used.
        StoreLocked: Somebody serves the store, writes to it, or moves it elsewhere.
        StoreError: A part of it cannot be read or written.
    """
    root = find_root(uri)
    manifest = read_manifest(root)
    wanted = manifest.shards.count if count is None else count
    check_count(wanted)
    check_unserved(root)
    moved = 0, 0
    is_so = (manifest.shards.count, manifest.shards.embedder) == (wanted, embedder.identity)
    if manifest.planned is not None or not is_so:
        manifest = _plan(manifest, wanted, embedder)
        # Whoever began to serve it before it was planned has told so by now.
        check_unserved(root)
        mover = _Move(manifest, embedder, on_progress)
        moved = mover.run()
        manifest = Manifest(manifest.number + 1, mover.target)
        write_manifest(manifest)
    _remove_former(manifest)
    shards = manifest.shards
    return MoveReport(
        store=name_place(root),
        shards=shards.count,
        embedder=str(shards.embedder),
        memories=moved[0],
        revisions=moved[1],
    )


def reshard(
    uri: str, embedder: EmbeddingModel, *, count: int, on_progress: Progress = ignore_progress
) -> MoveReport:
    """Change the number of shards; see `move`.

    Raises:
        EmbedderMismatch: The embedder is not that of the store.
    """
    known = read_manifest(find_root(uri)).shards.embedder
    if known != embedder.identity:
        raise EmbedderMismatch(
            f"{uri}: its vectors were made by {known}, not by {embedder.identity}. Name that "
            "embedder, or change it with `ekphory cluster reembed`."
        )
    return move(uri, embedder, count=count, on_progress=on_progress)


def _plan(manifest: Manifest, count: int, embedder: EmbeddingModel) -> Manifest:
    """Return the plan that is there, or fence all shards and make one."""
    source, planned = manifest.shards, manifest.planned
    if planned is not None and (planned.count, planned.embedder) == (count, embedder.identity):
        return manifest
    if planned is None:
        for shard in range(source.count):
            source.lease(shard).check_unused()
    versions = tuple(_fence(source, shard) for shard in range(source.count))
    number = manifest.number + 1
    # No two plans share it, also where a copy of a store begins its manifest anew.
    target = Shards(source.root, count, embedder.identity, source.generation + number)
    plan = Manifest(number, source, target, versions)
    write_manifest(plan)
    return plan


def _fence(source: Shards, shard: int) -> int:
    """Let nobody write a shard any more; return the state in which it is moved."""
    uri, lease = source.uri(shard), source.lease(shard)
    store = LanceStore.open(
        uri, protocol.StoreIdentity(protocol.SCHEMA_VERSION, TERMS_VERSION, source.embedder)
    )
    lease.tables = [store, Ledger(uri)]
    lease.seal()
    Objects(source.root).put_new(f"{source.catalog(shard)}/{LAST}", b"")
    return store.version()


def _remove_former(manifest: Manifest) -> None:
    """Remove all shards but the present ones, which what broke off may have left as well."""
    objects, current = Objects(manifest.shards.root), manifest.shards
    states = [read_manifest(current.root, number) for number in range(manifest.number)]
    former = {each for state in states for each in (state.shards, state.planned) if each}
    for shards in former - {current}:
        for shard in range(shards.count):
            objects.delete_folder(shards.name(shard))
            delete_states(objects, shards.catalog(shard), but=str(LAST))


def delete_states(objects: Objects, catalog: str, *, but: str) -> None:
    """Delete all states of a catalog but one."""
    for name in objects.names(catalog):
        if name != but:
            objects.delete(f"{catalog}/{name}")


@dataclass(slots=True)
class _Source:
    """A shard that is moved: which keys it has, where its rows are, and where they go.

    Attributes:
        state: Of its table.
        ledger: Of its decisions.
        keys: Those of all rows and decisions, ascending.
        moved: What each becomes.
        rows: Key, row id and new shard of each row, shape (rows, 3), ascending.
    """

    state: LanceSnapshot
    ledger: LedgerState
    keys: protocol.IntArray
    rows: protocol.IntArray
    moved: protocol.IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    def rename(self, keys: protocol.IntArray) -> protocol.IntArray:
        return np.asarray(self.moved[np.searchsorted(self.keys, keys)])

    def rows_for(self, shard: int) -> protocol.IntArray:
        return np.asarray(self.rows[self.rows[:, 2] == shard])

    def read(self, rows: protocol.IntArray) -> list[protocol.StoredMemory]:
        """Read memories by all of their rows, and give them their new keys."""
        return [
            replace(memory, key=int(self.rename(np.array(memory.key))))
            for memory in self.state.take_stored(rows[:, 1])
        ]

    def decisions_for(self, target: Shards, shard: int) -> Iterator[LedgerEntry]:
        """Yield the decisions on memories of a new shard; their ids are made of their rows."""
        for entry in self.ledger.entries.values():
            if target.find(entry.owner[0], entry.owner[1]) == shard:
                yield entry.moved(lambda key: int(self.rename(np.array(key))))


class _Move:
    """Copies what a plan says; what is there already is passed over."""

    def __init__(self, plan: Manifest, embedder: EmbeddingModel, on_progress: Progress) -> None:
        assert plan.planned is not None  # noqa: S101  as the caller looked
        self._plan, self.target, self._embedder = plan, plan.planned, embedder
        self._is_copied = plan.shards.embedder == embedder.identity
        self._objects = Objects(plan.shards.root)
        self._on_progress = on_progress
        self._done = 0

    def run(self) -> tuple[int, int]:
        """Copy all; return how many memories and decisions there are."""
        with making_tables(self._objects):
            self.target.make_tables()
        sources = [self._read_source(shard) for shard in range(self._plan.shards.count)]
        last, judged_to = _number_anew(sources)
        self._total = sum(len(np.unique(each.rows[:, 0])) for each in sources)
        self._on_progress(0, self._total)
        decided = 0
        catalogs = self._split_catalogs()
        for shard in range(self.target.count):
            lease = self.target.lease(shard)
            with hold_shard(self.target, shard, self._embedder, lease=lease) as engine:
                filled = _Filled(engine, lease)
                for source in sources:
                    self._copy(source, shard, filled)
                decided += filled.decide(
                    [e for source in sources for e in source.decisions_for(self.target, shard)],
                    judged_to,
                )
                filled.raise_versions(last)
                keys = [source.rename(source.rows_for(shard)[:, 0]) for source in sources]
                filled.check(np.unique(np.concatenate(keys)))
            if shard in catalogs:
                self._objects.put_new(f"{self.target.catalog(shard)}/{1:012}", catalogs[shard])
        return self._total, decided

    def _read_source(self, shard: int) -> _Source:
        uri = self._plan.shards.uri(shard)
        state = LanceSnapshot(uri, version=self._plan.versions[shard])
        if self._is_copied and state.identity.embedder != self._embedder.identity:
            raise StoreError(
                f"{uri}: its vectors are of {state.identity.embedder}, unlike those of other "
                "shards. Make them anew with `ekphory cluster reembed`."
            )
        ledger = Ledger(uri).read()
        decided = [key for entry in ledger.entries.values() for key in entry.keys]
        rows = _find_rows(state, self.target)
        keys = np.union1d(rows[:, 0], np.array(decided, np.int64))
        return _Source(state, ledger, keys, rows)

    def _copy(self, source: _Source, shard: int, filled: _Filled) -> None:
        rows = source.rows_for(shard)
        missing = rows[~np.isin(source.rename(rows[:, 0]), filled.keys())]
        keys, starts = np.unique(missing[:, 0], return_index=True)
        self._tell(len(np.unique(rows[:, 0])) - len(keys))
        # All rows of a memory are written in one commit.
        for part in np.split(missing, starts[_MEMORIES_A_COMMIT::_MEMORIES_A_COMMIT]):
            memories = source.read(part) if len(part) else []
            if not self._is_copied:
                read = embed_records(self._embedder, [memory.record for memory in memories])
                memories = [
                    replace(memory, vectors=vectors)
                    for memory, (vectors, _) in zip(memories, read, strict=True)
                ]
            filled.add(memories)
            self._tell(len(memories))

    def _tell(self, more: int) -> None:
        self._done += more
        self._on_progress(self._done, self._total)

    def _split_catalogs(self) -> dict[int, bytes]:
        """Return the catalogs of the new shards, where they hold anything."""
        rows: dict[int, list[CatalogRow]] = defaultdict(list)
        with tempfile.TemporaryDirectory(prefix="ekphory-catalogs-") as folder:
            for shard in range(self._plan.shards.count):
                name = self._plan.shards.catalog(shard)
                states = [each for each in self._objects.numbers(name) if each != LAST]
                content = self._objects.get(f"{name}/{states[-1]:012}") if states else None
                for row in read_catalog(content, Path(folder) / str(shard), name):
                    rows[self.target.find(row.org, row.project)].append(row)
            return {
                shard: write_catalog(own, Path(folder) / f"new-{shard}")
                for shard, own in rows.items()
            }


def _find_rows(state: LanceSnapshot, target: Shards) -> protocol.IntArray:
    """Return key, row id and new shard of each row, in the order of keys."""
    found = state.places(["key", "org", "project"])
    owners = zip(found["org"].to_pylist(), found["project"].to_pylist(), strict=True)
    known: dict[tuple[str | None, str | None], int] = {}
    new = np.empty(found.num_rows, np.int64)
    for place, owner in enumerate(owners):
        if owner not in known:
            known[owner] = target.find(*owner)
        new[place] = known[owner]
    columns = [found[name].to_numpy().astype(np.int64) for name in ("key", "_rowid")]
    rows = np.stack([*columns, new], axis=1)
    return np.asarray(rows[np.argsort(rows[:, 0], kind="stable")])


def _number_anew(sources: Sequence[_Source]) -> tuple[int, int]:
    """Assign new numbers to the keys of all sources, so that none is there twice.

    The order of each shard stays, and that in which a search of all shards sees them. What was
    compared with earlier memories comes before what was not.

    Returns:
        The last key, and the last one of what was compared.
    """
    keys = np.concatenate([source.keys for source in sources])
    shards = np.repeat(np.arange(len(sources)), [len(source.keys) for source in sources])
    judged = [source.keys <= (source.ledger.judged_to or 0) for source in sources]
    is_judged = np.concatenate(judged)
    moved = np.empty(len(keys), np.int64)
    moved[np.lexsort((shards, keys, ~is_judged))] = np.arange(1, len(keys) + 1)
    ends = np.cumsum([len(source.keys) for source in sources])[:-1]
    for source, own in zip(sources, np.split(moved, ends), strict=True):
        source.moved = own
    return len(keys), int(np.count_nonzero(is_judged))


class _Filled:
    """A new shard as its writer."""

    def __init__(self, engine: Engine, lease: ShardLease) -> None:
        self._engine, self._lease = engine, lease
        self._version = -1
        self._keys = np.empty(0, np.int64)

    def keys(self) -> protocol.IntArray:
        """Return the keys that it has, also those that another process has added."""
        version = self._engine.store.version()
        if version != self._version:
            self._keys, self._version = self._engine.store.keys(EVERYTHING), version
        return self._keys

    def add(self, memories: Sequence[protocol.StoredMemory]) -> None:
        """Add those memories that are not there yet."""
        self._engine.writer.submit(partial(self._add, memories)).result()

    def _add(self, memories: Sequence[protocol.StoredMemory]) -> None:
        # Looked at under the lease: another process may have gone on with the same plan.
        is_outdated = self._engine.store.version() != self._version
        known = set(self.keys().tolist()) if is_outdated else set()
        new = [memory for memory in memories if memory.key not in known]
        if new:
            self._engine.store.append(new)
        self._keys = np.union1d(self._keys, [memory.key for memory in new])
        self._version = self._engine.store.version()

    def decide(self, entries: Sequence[LedgerEntry], judged_to: int) -> int:
        """Add those decisions that are not there yet; return how many there are."""

        def write() -> None:
            known = self._engine.ledger.read()
            new = [entry for entry in entries if entry.revision.id not in known.entries]
            if new or known.judged_to != judged_to:
                self._engine.ledger.append(new, judged_to=judged_to)

        self._engine.writer.submit(write).result()
        return len(entries)

    def raise_versions(self, last: int) -> None:
        """Commit until no later write can be given a key up to `last`."""

        def write() -> None:
            while protocol.first_key(after=self._engine.store.version()) <= last:
                self._lease.tables[0].fence()

        self._engine.writer.submit(write).result()

    def check(self, expected: protocol.IntArray) -> None:
        """Check that exactly these memories are there.

        Raises:
            StoreError: They are not.
        """
        found = self._engine.store.keys(EVERYTHING)
        if not np.array_equal(found, expected):
            raise StoreError(
                f"{self._engine.uri}: holds {len(found):,} memories in place of {len(expected):,}. "
                "The store was not switched; run the command again."
            )


@dataclass(frozen=True, slots=True)
class CatalogRow:
    """A row of a catalog, with whose it is.

    Attributes:
        table: Its table.
        org, project: Whose it is.
        values: Its columns.
    """

    table: str
    org: str
    project: str
    values: Mapping[str, Value]


_CATALOG_TABLES = {
    "projects": "",
    "traces": "place",
    "shown_ids": "",
    "semantic_sets": "",
    "set_types": "",
    "categories": "",
    "disabled_categories": "",
    "tags": "",
    "extraction_jobs": "id",
    "consolidations": "",
}
"""What a cluster keeps of a project, each with the column that numbers the rows anew."""
_OWNERS = {
    "tags": "SELECT categories.org, categories.project, tags.* FROM tags "
    "JOIN categories ON categories.id = tags.category_id ORDER BY tags.id"
}
"""How rows are read that do not say themselves whose they are."""


def read_catalog(content: bytes | None, path: Path, name: str) -> Iterator[CatalogRow]:
    """Yield the rows of a catalog.

    Raises:
        StoreError: It holds what belongs to no project alone.
    """
    if content is None:
        return
    path.write_bytes(content)
    database = Database(path)
    try:
        tables = database.read(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        for (table,) in tables:
            yield from _read_table(database, table, name)
    finally:
        database.close()


def _read_table(database: Database, table: str, name: str) -> Iterator[CatalogRow]:
    rows = database.read(_OWNERS.get(table, f"SELECT * FROM {table}"))  # noqa: S608  a name of SQLite's own
    if rows and (table not in _CATALOG_TABLES or not all(row["project"] for row in rows)):
        raise StoreError(
            f"{name}: holds rows of {table}, which no shards share. Remove them through the "
            "`ekphory` that wrote them, and run the command again."
        )
    owner = ("org", "project") if table in _OWNERS else ()
    for row in rows:
        left_out = (_CATALOG_TABLES[table], *owner)
        values = {key: value for key, value in dict(row).items() if key not in left_out}
        yield CatalogRow(table, row["org"], row["project"], values)


def write_catalog(rows: Sequence[CatalogRow], path: Path) -> bytes:
    """Return the state of a catalog with these rows; `path` is that of a file in the making."""
    states: list[bytes] = []
    database = Database(path, publish=states.append)
    try:
        for table in _CATALOG_TABLES:
            database.insert_new(table, [row.values for row in rows if row.table == table])
        with database.transaction():
            pass
    finally:
        database.close()
    return states[-1]
