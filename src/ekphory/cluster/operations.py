"""What is done to a whole store of shards: moved to other shards, kept up, copied, erased from.

Moving is how the number of shards changes, and the embedder. Decision 0041 tells why it is safe:
nobody can write the shards that are moved any more, each of them is read in one state that the
manifest names, and one object, the manifest's next state, is the switch.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np

from ekphory import history
from ekphory.catalog.database import Database, Value
from ekphory.cluster.objects import Objects, find_root
from ekphory.cluster.serving import ShardCatalog
from ekphory.cluster.shards import (
    LAST,
    MANIFEST,
    Manifest,
    ShardLease,
    Shards,
    check_count,
    check_unserved,
    hold_shard,
    making_tables,
    open_shards,
    read_manifest,
    write_manifest,
)
from ekphory.detect import revision_id
from ekphory.engine import Engine
from ekphory.errors import EmbedderMismatch, InvalidInput, StoreError
from ekphory.filters.tree import EVERYTHING, And, Comparison, Filter, MetadataField, Or
from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.lexical import TERMS_VERSION
from ekphory.scope import Scope
from ekphory.service.semantic import feature_key
from ekphory.store.lance import LanceStore
from ekphory.store.lance_snapshot import LanceSnapshot
from ekphory.store.ledger import Ledger, LedgerEntry, LedgerState
from ekphory.store.protocol import (
    SCHEMA_VERSION,
    Damage,
    IntArray,
    StoredMemory,
    StoreHealth,
    StoreIdentity,
    Verification,
    first_key,
)
from ekphory.transfer import ExportReport, export_to_file, export_to_stream
from ekphory.types import Progress, ignore_progress, now_utc
from ekphory.write import embed_records

# Moving a store to other shards.

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
    if not _is_done(manifest, wanted, embedder):
        manifest = _plan(manifest, wanted, embedder)
        # Whoever began to serve it before it was planned has told so by now.
        check_unserved(root)
        moved = _Move(manifest, embedder, on_progress).run()
        manifest = _switch(manifest)
    _remove_former(manifest)
    shards = manifest.shards
    return MoveReport(
        store=root,
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


def _is_done(manifest: Manifest, count: int, embedder: EmbeddingModel) -> bool:
    shards = manifest.shards
    is_so = (shards.count, shards.embedder) == (count, embedder.identity)
    return manifest.planned is None and is_so


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
    store = LanceStore.open(uri, StoreIdentity(SCHEMA_VERSION, TERMS_VERSION, source.embedder))
    lease.tables = [store, Ledger(uri)]
    lease.seal()
    Objects(source.root).put_new(f"{source.catalog(shard)}/{LAST}", b"")
    return store.version()


def _switch(plan: Manifest) -> Manifest:
    if plan.planned is None:
        return plan
    done = Manifest(plan.number + 1, plan.planned)
    write_manifest(done)
    return done


def _remove_former(manifest: Manifest) -> None:
    """Remove all shards but the present ones, which what broke off may have left as well."""
    objects, current = Objects(manifest.shards.root), manifest.shards
    states = [read_manifest(current.root, number) for number in range(manifest.number)]
    former = {each for state in states for each in (state.shards, state.planned) if each}
    for shards in former - {current}:
        for shard in range(shards.count):
            objects.delete_folder(shards.name(shard))
            _delete_states(objects, shards.catalog(shard), but=str(LAST))


def _delete_states(objects: Objects, catalog: str, *, but: str) -> None:
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
    keys: IntArray
    rows: IntArray
    moved: IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    def rename(self, keys: IntArray) -> IntArray:
        return np.asarray(self.moved[np.searchsorted(self.keys, keys)])

    def rows_for(self, shard: int) -> IntArray:
        return np.asarray(self.rows[self.rows[:, 2] == shard])

    def read(self, rows: IntArray) -> list[StoredMemory]:
        """Read memories by all of their rows, and give them their new keys."""
        return [
            replace(memory, key=int(self.rename(np.array(memory.key))))
            for memory in self.state.take_stored(rows[:, 1])
        ]

    def decisions_for(self, target: Shards, shard: int) -> Iterator[LedgerEntry]:
        """Yield the decisions on memories of a new shard; their ids are made of their rows."""
        for entry in self.ledger.entries.values():
            if target.find(entry.owner[0], entry.owner[1]) == shard:
                older, newer = self.rename(np.array([entry.older_key, entry.newer_key])).tolist()
                name = revision_id(entry.owner, (older, newer))
                yield replace(
                    entry,
                    revision=replace(entry.revision, id=name),
                    older_key=older,
                    newer_key=newer,
                )


class _Move:
    """Copies what a plan says; what is there already is passed over."""

    def __init__(self, plan: Manifest, embedder: EmbeddingModel, on_progress: Progress) -> None:
        assert plan.planned is not None  # noqa: S101  as the caller looked
        self._plan, self._target, self._embedder = plan, plan.planned, embedder
        self._is_copied = plan.shards.embedder == embedder.identity
        self._objects = Objects(plan.shards.root)
        self._on_progress = on_progress
        self._done = 0

    def run(self) -> tuple[int, int]:
        """Copy all; return how many memories and decisions there are."""
        with making_tables(self._objects):
            self._target.make_tables()
        sources = [self._read_source(shard) for shard in range(self._plan.shards.count)]
        last, judged_to = _number_anew(sources)
        self._total = sum(len(np.unique(each.rows[:, 0])) for each in sources)
        self._on_progress(0, self._total)
        decided = 0
        catalogs = self._split_catalogs()
        for shard in range(self._target.count):
            lease = self._target.lease(shard)
            with hold_shard(self._target, shard, self._embedder, lease=lease) as engine:
                filled = _Filled(engine, lease)
                for source in sources:
                    self._copy(source, shard, filled)
                decided += filled.decide(
                    [e for source in sources for e in source.decisions_for(self._target, shard)],
                    judged_to,
                )
                filled.raise_versions(last)
                keys = [source.rename(source.rows_for(shard)[:, 0]) for source in sources]
                filled.check(np.unique(np.concatenate(keys)))
            if shard in catalogs:
                self._objects.put_new(f"{self._target.catalog(shard)}/{1:012}", catalogs[shard])
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
        decided = [key for e in ledger.entries.values() for key in (e.older_key, e.newer_key)]
        rows = _find_rows(state, self._target)
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
        rows: dict[int, list[tuple[str, dict[str, Value]]]] = defaultdict(list)
        with tempfile.TemporaryDirectory(prefix="ekphory-catalogs-") as folder:
            for shard in range(self._plan.shards.count):
                name = self._plan.shards.catalog(shard)
                states = [each for each in self._objects.names(name) if each != str(LAST)]
                content = self._objects.get(f"{name}/{max(states)}") if states else None
                for table, row in _read_catalog(content, Path(folder) / str(shard), name):
                    new = self._target.find(str(row["org"]), str(row["project"]))
                    rows[new].append((table, row))
            return {
                shard: _write_catalog(own, Path(folder) / f"new-{shard}")
                for shard, own in rows.items()
            }


def _find_rows(state: LanceSnapshot, target: Shards) -> IntArray:
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
    """Give the keys of all sources new numbers, so that none is there twice.

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

    def keys(self) -> IntArray:
        """Return the keys that it has, also those that another process has added."""
        version = self._engine.store.version()
        if version != self._version:
            self._keys, self._version = self._engine.store.keys(EVERYTHING), version
        return self._keys

    def add(self, memories: Sequence[StoredMemory]) -> None:
        """Add those memories that are not there yet."""
        self._engine.writer.submit(partial(self._add, memories)).result()

    def _add(self, memories: Sequence[StoredMemory]) -> None:
        # Looked at under the lease: another process may have gone on with the same plan.
        known = set(self.keys().tolist()) if self._is_outdated() else set()
        new = [memory for memory in memories if memory.key not in known]
        if new:
            self._engine.store.append(new)
        self._keys = np.union1d(self._keys, [memory.key for memory in new])
        self._version = self._engine.store.version()

    def _is_outdated(self) -> bool:
        return self._engine.store.version() != self._version

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
            while first_key(after=self._engine.store.version()) <= last:
                self._lease.tables[0].fence()

        self._engine.writer.submit(write).result()

    def check(self, expected: IntArray) -> None:
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


_CATALOG_TABLES = {"projects": "", "traces": "place", "shown_ids": "", "extraction_jobs": "id"}
"""What a cluster keeps of a project, each with the column that numbers the rows."""


def _read_catalog(
    content: bytes | None, path: Path, name: str
) -> Iterator[tuple[str, dict[str, Value]]]:
    """Yield the rows of a catalog, each with its table.

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
            rows = database.read(f"SELECT * FROM {table}")  # noqa: S608  a name of SQLite's own
            if rows and table not in _CATALOG_TABLES:
                raise StoreError(
                    f"{name}: holds rows of {table}, which no shards share. Remove them through "
                    "the `ekphory` that wrote them, and run the command again."
                )
            for row in rows:
                yield table, {k: v for k, v in dict(row).items() if k != _CATALOG_TABLES[table]}
    finally:
        database.close()


def _write_catalog(rows: Sequence[tuple[str, Mapping[str, Value]]], path: Path) -> bytes:
    states: list[bytes] = []
    database = Database(path, publish=states.append)
    try:
        for table in _CATALOG_TABLES:
            database.insert_new(table, [row for name, row in rows if name == table])
        with database.transaction():
            pass
    finally:
        database.close()
    return states[-1]


# What one store can do, done to all shards.


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardReport:
    """What became of one shard.

    Attributes:
        shard: Its number.
        report: What the verb of a single store returns.
    """

    shard: int
    report: StoreHealth | Verification


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardReports:
    """What became of all shards."""

    store: str
    verb: str
    shards: tuple[ShardReport, ...]

    @property
    def damage(self) -> tuple[Damage, ...]:
        """All damage that was found."""
        found = (each.report for each in self.shards if isinstance(each.report, Verification))
        return tuple(damage for report in found for damage in report.damage)


Steps = Callable[[str, int, int], None]
"""Is told what is counted, how much is done, and of how much."""


def _optimize(engine: Engine, _: Progress) -> StoreHealth:
    engine.writer.repair()
    return engine.health()


def _purge(engine: Engine, _: Progress) -> StoreHealth:
    history.purge(engine)
    return engine.health()


VERBS: Mapping[str, Callable[[Engine, Progress], StoreHealth | Verification]] = {
    "optimize": _optimize,
    "purge": _purge,
    "verify": Engine.verify,
}
"""What can be done to one shard after the other, while they are served."""


def do_in_shards(
    uri: str, embedder: EmbeddingModel, verb: str, *, on_progress: Steps
) -> ShardReports:
    """Do one of `VERBS` to all shards; if it breaks off, do it again.

    Raises:
        StoreError: A shard cannot be read or written.
    """
    shards = open_shards(uri, embedder)
    done: list[ShardReport] = []
    for shard in range(shards.count):
        on_progress("shards", shard, shards.count)
        with hold_shard(shards, shard, embedder) as engine:
            report = VERBS[verb](engine, partial(on_progress, "rows of a shard"))
            done.append(ShardReport(shard=shard, report=report))
    on_progress("shards", shards.count, shards.count)
    return ShardReports(store=shards.root, verb=verb, shards=tuple(done))


def export(
    uri: str,
    embedder: EmbeddingModel,
    target: Path | IO[bytes],
    *,
    on_progress: Progress = ignore_progress,
) -> ExportReport:
    """Write what all shards hold to JSON Lines, as `Memory.export` does for a store."""
    shards = open_shards(uri, embedder)
    uris = [shards.uri(shard) for shard in range(shards.count)]
    if isinstance(target, Path):
        return export_to_file(uris, Scope(), target, on_progress)
    return export_to_stream(uris, Scope(), target, on_progress)


# Copies of a whole store.

_COPY = "ekphory-copy.json"
"""In a copy, and in none but a copy: says of which store it is one."""
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """What a copy of a store of shards holds.

    Attributes:
        store, target: URIs of the store and of its copy.
        shards: How many shards it has.
        memories: How many memories it holds, earlier versions included.
        copied, bytes: How many objects were copied now, and their length.
    """

    store: str
    target: str
    shards: int
    memories: int
    copied: int
    bytes: int


def back_up(
    uri: str,
    embedder: EmbeddingModel,
    target: str,
    *,
    on_progress: Progress = ignore_progress,
) -> CopyReport:
    """Copy a store while it is served, each shard in one state, to another place.

    The copy is a store of shards itself, which can be served, and backed up to a third place. Run
    again, it copies what has changed since, and removes what is gone.

    Args:
        uri: Of the store.
        embedder: What its vectors are made with.
        target: Where to; a directory or a URI as that of a store.
        on_progress: Called with how many bytes are there, and of how many.

    Raises:
        InvalidInput: Something else is at the target, or it was written to as a store.
        StoreError: A part cannot be read or written, or is damaged.
    """
    shards, root = open_shards(uri, embedder), find_root(target)
    copy = _Copy(shards, root, on_progress)
    copy.begin()
    memories = sum(copy.copy_shard(shard) for shard in range(shards.count))
    copy.end()
    return CopyReport(
        store=shards.root,
        target=root,
        shards=shards.count,
        memories=memories,
        copied=copy.copied,
        bytes=copy.bytes,
    )


class _Copy:
    """One copy in the making."""

    def __init__(self, shards: Shards, root: str, on_progress: Progress) -> None:
        self._shards, self._root = shards, root
        self._source, self._target = Objects(shards.root), Objects(root)
        self._on_progress = on_progress
        self._done = 0
        self._total = 0
        self.copied = self.bytes = 0

    def begin(self) -> None:
        """Mark the place, and let nobody take it for whole before it is."""
        source, marked = self._shards.root.encode(), self._target.get(_COPY)
        is_free = marked == source or (marked is None and not self._target.names())
        if not is_free or self._target.names("leases") or source.decode() == self._root:
            problem = "something else is there, or it was written to since"
            raise InvalidInput("to", self._root, problem, "Name a new or an empty place")
        self._target.put(_COPY, source)
        self._target.delete(MANIFEST)
        names = ["memories.lance", *map(self._shards.name, range(self._shards.count))]
        self._total = sum(sum(self._source.sizes(name).values()) for name in names)
        self._copy_folder("memories.lance")

    def copy_shard(self, shard: int) -> int:
        """Copy one shard, read the copy, and return how many memories it holds."""
        self._copy_folder(self._shards.name(shard))
        catalog = self._shards.catalog(shard)
        for name in self._source.names(catalog)[-1:]:
            content = self._source.get(f"{catalog}/{name}")
            if content is not None:
                self._target.put(f"{catalog}/{name}", content)
        uri = f"{self._root}/{self._shards.name(shard)}"
        Ledger(uri).read()
        identity = StoreIdentity(SCHEMA_VERSION, TERMS_VERSION, self._shards.embedder)
        store = LanceStore.open(uri, identity)
        if damage := store.verify(ignore_progress).damage:
            raise StoreError(f"{uri}: {damage[0].file} is damaged ({damage[0].problem}).")
        return store.count(EVERYTHING)

    def end(self) -> None:
        """Write the manifest, which says that all of it is there."""
        shards = replace(self._shards, root=self._root)
        write_manifest(Manifest(0, shards))

    def _copy_folder(self, folder: str) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._copy_state(folder)
            except FileNotFoundError:
                # Others merged files meanwhile.
                if attempt == _ATTEMPTS:
                    raise
            else:
                return

    def _copy_state(self, folder: str) -> None:
        # What a manifest names was there before it, so the manifests are listed first.
        manifests = {
            name: size for name, size in self._source.sizes(folder).items() if _is_commit(name)
        }
        files = {n: size for n, size in self._source.sizes(folder).items() if not _is_commit(n)}
        there = self._target.sizes(folder)
        for name, size in (*files.items(), *manifests.items()):
            # But for the hint of the newest, no file of Lance is ever changed.
            if there.get(name) != size or name.endswith(".json"):
                self._target.copy_from(self._source, f"{folder}/{name}")
                self.copied += 1
                self.bytes += size
            self._done += size
            self._on_progress(min(self._done, self._total), self._total)
        for name in there.keys() - files.keys() - manifests.keys():
            self._target.delete(f"{folder}/{name}")


def _is_commit(name: str) -> bool:
    return "_versions/" in name


# Erasing a person.


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedFromShard:
    """What was erased from one shard.

    Attributes:
        shard: Its number.
        erased: How many memories, earlier versions included.
        sha256: Digest of the id of each, in hexadecimal, sorted.
        version: Number of the state of the shard that holds none of them.
    """

    shard: int
    erased: int
    sha256: tuple[str, ...]
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureReceipt:
    """What was erased of a person; nothing that they said is in it.

    Attributes:
        store: URI of the store.
        org, user: Of the person.
        erased_at: When all of it was gone, as ISO 8601 in UTC.
        erased: How many memories, earlier versions included.
        shards: What was erased from each shard.
    """

    store: str
    org: str
    user: str
    erased_at: str
    erased: int
    shards: tuple[ErasedFromShard, ...]


def erase(
    uri: str,
    embedder: EmbeddingModel,
    *,
    org: str,
    user: str,
    on_progress: Progress = ignore_progress,
) -> ErasureReceipt:
    """Erase all memories of a person in an organisation, from the files too.

    Theirs are the memories whose user they are, and those whose metadata name them as `user_id`,
    as learnt features do, with all earlier versions and all decisions on them. Others may go on.
    Each shard is rewritten, also where nothing of theirs is left: a run that was killed may have
    hidden it and not removed it from the files.

    Args:
        uri: Of the store.
        embedder: What its vectors are made with.
        org, user: Of the person.
        on_progress: Called with how many shards are done, and of how many.

    Raises:
        InvalidInput: A name cannot be used.
        StoreError: A shard cannot be read or written; run it again.
    """
    in_org = Scope(org=org).own_predicate()
    named = Comparison(MetadataField(feature_key("user_id")), "eq", user)
    theirs = And((in_org, Or((Scope(user=user).own_predicate(), named))))
    shards = open_shards(uri, embedder)
    done: list[ErasedFromShard] = []
    for shard in range(shards.count):
        on_progress(shard, shards.count)
        with hold_shard(shards, shard, embedder) as engine:
            ids = engine.writer.submit(partial(_delete, engine, theirs)).result()
            history.purge(engine)
            _forget_shown(engine, shards, shard, org)
            digests = sorted(hashlib.sha256(each.encode()).hexdigest() for each in ids)
            version = engine.store.version()
            done.append(
                ErasedFromShard(
                    shard=shard, erased=len(ids), sha256=tuple(digests), version=version
                )
            )
    on_progress(shards.count, shards.count)
    return ErasureReceipt(
        store=shards.root,
        org=org,
        user=user,
        erased_at=now_utc().isoformat(),
        erased=sum(each.erased for each in done),
        shards=tuple(done),
    )


def _delete(engine: Engine, which: Filter) -> list[str]:
    """Delete memories with their earlier versions; return the ids of all."""
    engine.store.version()
    found = engine.store.select(which, order="written")
    keys = set(engine.store.keys(which).tolist())
    for record in found:
        if record.supersedes is not None:
            keys |= set(engine.store.keys(history.are_versions_of(record)).tolist())
    ids = [record.id for record in engine.store.fetch(sorted(keys)).values()]
    engine.store.delete(sorted(keys))
    return ids


_MADE_AGAIN = ("traces", "shown_ids")
"""What a catalog tells of searches and ids, and may lack."""


def _forget_shown(engine: Engine, shards: Shards, shard: int, org: str) -> None:
    """Leave what tells of searches and ids of an organisation out of a shard's catalog."""
    objects, folder = Objects(shards.root), shards.catalog(shard)
    with tempfile.TemporaryDirectory(prefix="ekphory-catalog-") as place:
        path = Path(place) / "catalog.sqlite3"
        catalog = ShardCatalog(objects, folder, path)
        content = path.read_bytes() if path.exists() else None
        rows = list(_read_catalog(content, path, folder))
        kept = [row for row in rows if row[0] not in _MADE_AGAIN or row[1]["org"] != org]
        if len(kept) < len(rows):
            written = _write_catalog(kept, Path(place) / "new")
            engine.writer.submit(lambda: catalog.publish(written)).result()
            _delete_states(objects, folder, but=objects.names(folder)[-1])
