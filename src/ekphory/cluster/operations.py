"""What is done to a whole store of shards: kept up, copied, exported, erased from."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO

from ekphory import history
from ekphory.cluster.moving import CatalogRow, delete_states, read_catalog, write_catalog
from ekphory.cluster.objects import Objects, find_root, name_place
from ekphory.cluster.served_shards import ShardCatalog
from ekphory.cluster.shards import (
    MANIFEST,
    Manifest,
    Shards,
    hold_shard,
    open_shards,
    write_manifest,
)
from ekphory.engine import Engine
from ekphory.errors import InvalidInput, StoreError
from ekphory.filters.tree import EVERYTHING, And, Comparison, Filter, MetadataField, Or
from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.lexical import TERMS_VERSION
from ekphory.scope import Scope
from ekphory.service.semantic import feature_key
from ekphory.service.sets import USER_KEYS
from ekphory.store.lance import LanceStore
from ekphory.store.ledger import Ledger
from ekphory.store.protocol import (
    SCHEMA_VERSION,
    Damage,
    StoreHealth,
    StoreIdentity,
    Verification,
)
from ekphory.transfer import ExportReport, export_to_file, export_to_stream
from ekphory.types import Progress, ignore_progress, now_utc

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
    return ShardReports(store=name_place(shards.root), verb=verb, shards=tuple(done))


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
    shards, root = open_shards(uri, embedder), find_root(target, field="target")
    copy = _Copy(shards, root, on_progress)
    copy.begin()
    memories = sum(copy.copy_shard(shard) for shard in range(shards.count))
    copy.end()
    return CopyReport(
        store=name_place(shards.root),
        target=name_place(root),
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
        place, remedy = name_place(self._root), "Name a new or an empty place"
        if self._root == self._shards.root:
            raise InvalidInput("target", place, "is the store itself", remedy)
        source, marked = self._shards.root.encode(), self._target.get(_COPY)
        is_free = marked == source or (marked is None and not self._target.names())
        if not is_free or self._target.names("leases"):
            problem = "something else is there, or it was written to since"
            raise InvalidInput("target", place, problem, remedy)
        self._target.put(_COPY, source)
        self._target.delete(MANIFEST)
        names = ["memories.lance", *map(self._shards.name, range(self._shards.count))]
        self._total = sum(sum(self._source.sizes(name).values()) for name in names)
        self._copy_folder("memories.lance")

    def copy_shard(self, shard: int) -> int:
        """Copy one shard, read the copy, and return how many memories it holds."""
        self._copy_folder(self._shards.name(shard))
        catalog = self._shards.catalog(shard)
        for state in self._source.numbers(catalog)[-1:]:
            content = self._source.get(f"{catalog}/{state:012}")
            if content is not None:
                self._target.put(f"{catalog}/{state:012}", content)
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
        for _ in range(_ATTEMPTS - 1):
            # Others may merge files meanwhile.
            with suppress(FileNotFoundError):
                return self._copy_state(folder)
        return self._copy_state(folder)

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

    Theirs are the memories whose user they are, and those whose metadata name them as `user_id` or
    `producer_id`, as features do, with all earlier versions and all decisions on them, and the
    semantic sets that are about them. Others may go on.
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
    for name, value in (("org", org), ("user", user)):
        if not value:
            raise InvalidInput(name, value, "names nobody", "Name the organisation and the person")
    in_org = Scope(org=org).own_predicate()
    named = (Comparison(MetadataField(feature_key(key)), "eq", user) for key in USER_KEYS)
    theirs = And((in_org, Or((Scope(user=user).own_predicate(), *named))))
    shards = open_shards(uri, embedder)
    done: list[ErasedFromShard] = []
    for shard in range(shards.count):
        on_progress(shard, shards.count)
        with hold_shard(shards, shard, embedder) as engine:
            ids = engine.writer.submit(partial(_delete, engine, theirs)).result()
            history.purge(engine)
            _forget_in_catalog(engine, shards, shard, org=org, user=user)
            sha256 = tuple(sorted(hashlib.sha256(each.encode()).hexdigest() for each in ids))
            told = {"shard": shard, "erased": len(ids), "version": engine.store.version()}
            done.append(ErasedFromShard(sha256=sha256, **told))
    on_progress(shards.count, shards.count)
    return ErasureReceipt(
        store=name_place(shards.root),
        org=org,
        user=user,
        erased_at=now_utc().isoformat(),
        erased=sum(each.erased for each in done),
        shards=tuple(done),
    )


def _delete(engine: Engine, which: Filter) -> list[str]:
    """Delete memories with their earlier versions; return the ids of all."""
    _, keys = history.find_whole(engine, which)
    ids = [record.id for record in engine.store.fetch(keys).values()]
    engine.store.delete(keys)
    return ids


_MADE_AGAIN = ("traces", "shown_ids")
"""What a catalog tells of searches and ids, and may lack."""


def _forget_in_catalog(engine: Engine, shards: Shards, shard: int, *, org: str, user: str) -> None:
    """Leave what tells of a person, or of an organisation's searches and ids, out of a catalog."""
    objects, folder = Objects(shards.root), shards.catalog(shard)
    with tempfile.TemporaryDirectory(prefix="ekphory-catalog-") as place:
        path = Path(place) / "catalog.sqlite3"
        catalog = ShardCatalog(objects, folder, path)
        content = path.read_bytes() if path.exists() else None
        rows = list(read_catalog(content, path, folder))
        kept = list(_without(rows, org=org, user=user))
        if len(kept) < len(rows):
            written = write_catalog(kept, Path(place) / "new")
            engine.writer.submit(lambda: catalog.publish(written)).result()
            delete_states(objects, folder, but=f"{objects.numbers(folder)[-1]:012}")


def _without(rows: Sequence[CatalogRow], *, org: str, user: str) -> Iterator[CatalogRow]:
    """Yield the rows of a catalog that tell nothing of a person, and can not be made again."""
    sets = {
        (row.project, row.values["id"])
        for row in rows
        if row.table == "semantic_sets" and row.org == org and _is_about(row, user)
    }
    categories = {
        row.values["id"]
        for row in rows
        if row.table == "categories" and (row.project, row.values["set_id"]) in sets
    }
    for row in rows:
        own_set = row.values["id"] if row.table == "semantic_sets" else row.values.get("set_id")
        is_theirs = (row.project, own_set) in sets or row.values.get("category_id") in categories
        if row.org != org or not (is_theirs or row.table in _MADE_AGAIN):
            yield row


def _is_about(semantic_set: CatalogRow, user: str) -> bool:
    tags = json.loads(str(semantic_set.values["tags"]))
    return any(tags.get(key) == user for key in USER_KEYS)
