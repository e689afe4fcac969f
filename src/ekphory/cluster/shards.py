"""A store in shards: each is a whole ekphory store, chosen by a stable hash of org and project.

Who may write a shard holds a lease with an epoch, which is a fence against whoever held it before.
An epoch is an object that is written only where there is none, so that one process alone gets each.
Its number tells who may write; the time in it only keeps others from taking the next one while its
holder is at work. So clocks that differ, and processes that pause, cost time and never a memory:

- Whoever takes an epoch first makes every commit fail that was begun under an earlier one
  (`store.lance_table.fence_table`).
- A write is acknowledged only if, after its commit, no later epoch is there.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ekphory.cluster.objects import LOCAL, Objects, find_root, name_place
from ekphory.cluster.spanning import make_spanning_engine
from ekphory.engine import Engine, acquire, make_engine, release
from ekphory.errors import EmbedderMismatch, InvalidInput, StoreError, StoreLocked
from ekphory.memory import Memory
from ekphory.models.embedder import EmbedderIdentity, EmbeddingModel
from ekphory.models.reranker import RerankingModel
from ekphory.retrieval.lexical import TERMS_VERSION
from ekphory.scope import DEFAULT_NAME, SCOPE_FIELDS, Scope
from ekphory.service.handles import FEATURES
from ekphory.store.lance import LanceStore, reserve_root
from ekphory.store.ledger import Ledger
from ekphory.store.protocol import SCHEMA_VERSION, StoreIdentity
from ekphory.store.writer import Fenced

LEASE_SECONDS = 10.0
_POLL_SECONDS = 0.1
_KEPT = 2
"""So many epochs stay: the newest, and the one that its holder still looks at."""
LAST = 10**12 - 1
"""No epoch, and no state of a catalog, comes after this one: the shard was moved, or is being."""


@dataclass(frozen=True, slots=True)
class _Lease:
    """Who holds an epoch, and until which second since 1970 others leave it alone."""

    holder: str
    until: float


def _read_lease(content: bytes, name: str) -> _Lease:
    """Return what an object says.

    Raises:
        StoreError: It is damaged.
    """
    try:
        read = json.loads(content)
        return _Lease(str(read["holder"]), float(read["until"]))
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{name}: is not a lease ({error}). Delete it once nobody writes."
        ) from error


class ShardLease:
    """The lease of one shard, for one writer; see `store.writer.FencedLock`."""

    def __init__(self, objects: Objects, folder: str, *, seconds: float = LEASE_SECONDS) -> None:
        """Name the folder of the epochs.

        Args:
            objects: Where it is.
            folder: Its name.
            seconds: How long a holder that says nothing is left alone.
        """
        self.tables: list[Fenced] = []
        self.events: Counter[str] = Counter()
        """How often it was taken, renewed, and lost to another process."""
        self._objects = objects
        self._folder = folder
        self._seconds = seconds
        self._holder = f"{socket.gethostname()} process {os.getpid()} {uuid.uuid4().hex[:8]}"
        self._epoch: int | None = None
        self._seen: tuple[_Lease | None, float] = None, 0.0
        """The lease of another process, and since when it is as it is, by the monotonic clock."""
        self._until = 0.0
        """Of the monotonic clock."""
        self._is_writing = False

    def is_sole(self) -> bool:
        """Whether nobody else can have written since this process last did; see `FencedLock`."""
        return self._is_writing or time.monotonic() < self._until

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lease for one write; it is kept afterwards.

        Raises:
            StoreLocked: Another process holds it, or took it meanwhile: what was written in the
                block may or may not last, and must not be acknowledged.
        """
        is_done = False
        try:
            if not self._keep():
                self._take()
            yield
            self._check_not_taken()
            is_done = True
        except StoreError as error:
            # A commit that met the fence of whoever took over fails by itself.
            self._check_not_taken(error)
            raise
        finally:
            self._is_writing = False
            if not is_done:
                # Whatever went wrong may be a fence: the next write takes an epoch of its own.
                self._lose()

    def give_back(self) -> None:
        """Let the next process write at once."""
        epoch = self._epoch
        self._lose()
        if epoch is not None:
            self._put(epoch, until=0.0)

    def seal(self) -> None:
        """Let nobody write any more: whoever was writing is refused, as by any later epoch."""
        self._objects.put_new(self._name(LAST), self._content(0.0))
        for table in self.tables:
            table.fence()

    def check_unused(self) -> None:
        """Check that no other process wrote a moment ago.

        Raises:
            StoreLocked: One did.
        """
        lease = self._read(self._newest())
        if lease is not None and lease.holder != self._holder and lease.until > time.time():
            raise StoreLocked(
                f"{self._folder}: {lease.holder} is writing. End it, wait for "
                f"{self._seconds:.0f} seconds, and run the command again."
            )

    def _check_not_taken(self, cause: StoreError | None = None) -> None:
        if self._epoch is not None and self._newest() != self._epoch:
            self.events["lease_lost"] += 1
            raise StoreLocked(
                f"{self._folder}: another process took over while this one was writing. Nothing "
                "was acknowledged; write again."
            ) from cause

    def _begin_writing(self) -> None:
        self._is_writing = True
        for table in self.tables:
            table.settle_reads()

    def _keep(self) -> bool:
        """Return whether the lease is still held, for long enough."""
        if self._epoch is None:
            return False
        # From here on reads ask no more, and would miss what whoever took over has written.
        if time.monotonic() >= self._until and self._is_lost(self._epoch):
            return False
        self._begin_writing()
        return time.monotonic() < self._until - self._seconds / 2 or self._renew(self._epoch)

    def _renew(self, epoch: int) -> bool:
        begun = time.monotonic()
        self._put(epoch, until=time.time() + self._seconds)
        # Looked at after it was written, while whoever takes the next one looks in turn at this.
        if self._is_lost(epoch):
            return False
        self.events["lease_renewed"] += 1
        self._until = begun + self._seconds
        return True

    def _is_lost(self, epoch: int) -> bool:
        """Return whether another process took over; then this one holds nothing any more."""
        if self._newest() == epoch:
            return False
        self.events["lease_lost"] += 1
        self._lose()
        return True

    def _take(self) -> None:
        # Others write until they are done: whoever reads meanwhile asks the table.
        self._is_writing = False
        until = time.monotonic() + 2 * self._seconds
        epoch = self._next(until)
        begun = time.monotonic()
        while not self._objects.put_new(
            self._name(epoch), self._content(time.time() + self._seconds)
        ):
            epoch = self._next(until)
            begun = time.monotonic()
        # It may have been renewed between the look at it and the next epoch.
        self._wait_for(epoch - 1, until)
        self._begin_writing()
        for table in self.tables:
            table.fence()
        if self._newest() != epoch:
            raise StoreLocked(f"{self._folder}: another process began to write. Write again.")
        self.events["lease_taken"] += 1
        self._epoch, self._until = epoch, begun + self._seconds
        for earlier in self._epochs()[:-_KEPT]:
            self._objects.delete(self._name(earlier))

    def _next(self, until: float) -> int:
        """Return the next epoch, once the newest one may be taken over."""
        newest = self._newest()
        if newest == LAST:
            raise make_sealed_error(self._folder)
        self._wait_for(newest, until)
        return newest + 1

    def _wait_for(self, epoch: int, until: float) -> None:
        while True:
            lease = self._read(epoch)
            if lease is None or lease.holder == self._holder or lease.until <= time.time():
                return
            seen, since = self._seen
            if lease != seen:
                self._seen = lease, time.monotonic()
            elif time.monotonic() - since > self._seconds:
                # Its holder does not renew it: the clock that says until when is ahead of ours.
                return
            if time.monotonic() > until:
                raise StoreLocked(
                    f"{self._folder}: {lease.holder} has been writing for over "
                    f"{2 * self._seconds:.0f} seconds. Write again, or end it."
                )
            time.sleep(_POLL_SECONDS)

    def _lose(self) -> None:
        self._until, self._epoch = 0.0, None

    def _newest(self) -> int:
        return max(self._epochs(), default=0)

    def _epochs(self) -> list[int]:
        return self._objects.numbers(self._folder)

    def _read(self, epoch: int) -> _Lease | None:
        content = self._objects.get(self._name(epoch))
        if content is None:
            return None
        return _read_lease(content, self._name(epoch))

    def _put(self, epoch: int, *, until: float) -> None:
        self._objects.put(self._name(epoch), self._content(until))

    def _content(self, until: float) -> bytes:
        return json.dumps(asdict(_Lease(self._holder, until))).encode()

    def _name(self, epoch: int) -> str:
        return f"{self._folder}/{epoch:012}"


def make_sealed_error(name: str) -> StoreError:
    """Return what is raised where something of a shard is to be used that was moved."""
    return StoreError(
        f"{name}: its memories were moved to other shards, or are being moved. Run the command "
        "that moves them until it is done, and open the store anew."
    )


MANIFEST = "ekphory-cluster.json"
_STATES = "manifests"
"""Later states of the manifest: numbered objects, of which the newest counts."""
_FORM = 1
_HASH = "blake2b-64 of the JSON list of org and project"
DEFAULT_SHARDS = 16
MOST_SHARDS = 4096


def find_shard(org: str | None, project: str | None, *, shards: int) -> int:
    """Return the number of the shard that holds a project.

    What names no org or project is that of `default`, and what was learnt of a project lies with
    it.
    """
    names = [org or DEFAULT_NAME, (project or DEFAULT_NAME).removesuffix(FEATURES)]
    digest = blake2b(json.dumps(names).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % shards


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards of one store.

    Attributes:
        root: Lance URI of the store.
        count: How many there are.
        embedder: What all vectors are made with.
        generation: 0 for the first ones of a store; later ones have a greater one each.
    """

    root: str
    count: int
    embedder: EmbedderIdentity
    generation: int = 0

    def find(self, org: str | None, project: str | None) -> int:
        """Return the number of the shard that holds a project."""
        return find_shard(org, project, shards=self.count)

    def name(self, shard: int) -> str:
        """Return the name of a shard's folder, which ends with its number."""
        return f"shard-{self.generation}-{shard:05}" if self.generation else f"shard-{shard:05}"

    def uri(self, shard: int) -> str:
        """Return the Lance URI of one shard."""
        return f"{self.root}/{self.name(shard)}"

    def catalog(self, shard: int) -> str:
        """Return the name of the folder of a shard's catalog."""
        return f"catalogs/{self.name(shard)}"

    def lease(self, shard: int, *, seconds: float = LEASE_SECONDS) -> ShardLease:
        """Return the lease of one shard, which nobody holds yet."""
        return ShardLease(Objects(self.root), f"leases/{self.name(shard)}", seconds=seconds)

    def make_tables(self) -> None:
        """Make the tables of all shards that are not there yet, while no other process does."""
        identity = StoreIdentity(SCHEMA_VERSION, TERMS_VERSION, self.embedder)
        for shard in range(self.count):
            LanceStore.open(self.uri(shard), identity)
            Ledger(self.uri(shard)).make(judged_to=0)


def check_count(count: int) -> None:
    """Check a number of shards.

    Raises:
        InvalidInput: It is out of range.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_SHARDS:
        raise InvalidInput("shards", count, "is out of range", f"Give 1 to {MOST_SHARDS:,}")


def make_shards(uri: str, embedder: EmbeddingModel, *, count: int | None = None) -> Shards:
    """Make a store of shards, or return the one that is there.

    Args:
        uri: `s3://`, `gs://` or `az://`, or a directory that all machines share.
        embedder: What its vectors will be made with.
        count: How many shards there must be; None for as many as there are, or a new store's 16.

    Raises:
        InvalidInput: The URI or the number cannot be used, or the store there has another number.
        StoreError: Another store is there, or the object storage loses writes.
    """
    wanted = DEFAULT_SHARDS if count is None else count
    check_count(wanted)
    root = find_root(uri)
    objects = Objects(root)
    objects.check_first_write_wins()
    if objects.get(MANIFEST) is None:
        _make(Shards(root, wanted, embedder.identity), objects)
    found = open_shards(root, embedder)
    if count not in (None, found.count):
        remedy = f"Give {found.count}, or change it with `ekphory cluster reshard`"
        raise InvalidInput("shards", count, f"the store there has {found.count}", remedy)
    return found


def _make(shards: Shards, objects: Objects) -> None:
    """Make what is not there yet; the manifest comes last, and says that all of it is there."""
    with making_tables(objects):
        if objects.get(MANIFEST) is None:
            reserve_root(shards.root, shards=shards.count)
            shards.make_tables()
            objects.put_new(MANIFEST, _write_manifest(Manifest(0, shards)))


@contextmanager
def making_tables(objects: Objects) -> Iterator[None]:
    """Let this process alone make tables, which is not as safe as writing to them."""
    making = ShardLease(objects, "leases/making")
    with making.held():
        yield
    making.give_back()


def open_shards(uri: str, embedder: EmbeddingModel) -> Shards:
    """Return the shards of a store that was made before.

    Raises:
        StoreError: There is none, it is being moved, or a part of it cannot be read.
        EmbedderMismatch: It was made with another embedder.
    """
    root = find_root(uri)
    manifest = read_manifest(root)
    shards, planned = manifest.shards, manifest.planned
    if planned is not None:
        verb = "reembed" if planned.embedder != shards.embedder else "reshard"
        raise StoreError(
            f"{name_place(root)}: is being moved to {planned.count} shards of {planned.embedder}. "
            f"Run `ekphory cluster {verb}` again until it is done."
        )
    if shards.embedder != embedder.identity:
        raise EmbedderMismatch(
            f"{name_place(root)}: its vectors were made by {shards.embedder}, but it was opened "
            f"with {embedder.identity}. Open it with the embedder {shards.embedder.name!r}."
        )
    return shards


# The manifest. Its states are written only where there is none, so that of two processes that
# would change it one alone does, and whoever plans to move a store sees what was planned since.


@dataclass(frozen=True, slots=True)
class Manifest:
    """One state of the manifest.

    Attributes:
        number: Of the state.
        shards: What holds the memories.
        planned: What they are being moved to; None while nothing is moved.
        versions: Of the table of each of `shards`, which are moved in that state.
    """

    number: int
    shards: Shards
    planned: Shards | None = None
    versions: tuple[int, ...] = ()


def read_manifest(root: str, number: int | None = None) -> Manifest:
    """Return a state of the manifest, by default the newest.

    Raises:
        StoreError: There is no store of shards, or the state is damaged.
    """
    absent = StoreError(
        f"{name_place(root)}: no store of shards is there. `ekphory cluster import` and "
        "`ekphory cluster serve` make one."
    )
    if root.startswith(LOCAL) and not Path(name_place(root)).is_dir():
        raise absent
    objects = Objects(root)
    if number is None:
        number = max(objects.numbers(_STATES), default=0)
    name = _state_name(number)
    content = objects.get(name)
    if content is None:
        raise absent
    try:
        read = json.loads(content)
        if (read["ekphory_cluster"], read["hash"]) != (_FORM, _HASH):
            raise StoreError(f"{name_place(root)}: was made by a newer ekphory. Upgrade this one.")
        planned = _read_shards(root, read["planned"]) if "planned" in read else None
        versions = tuple(map(int, read.get("versions", ())))
        if planned is not None and len(versions) != int(read["shards"]):
            raise ValueError(f"versions of {len(versions)} shards")
        return Manifest(number, _read_shards(root, read), planned, versions)
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{name_place(root)}/{name}: is damaged ({error}). Put it back from a copy of the "
            "store."
        ) from error


def write_manifest(manifest: Manifest) -> None:
    """Write the next state of the manifest, in one step.

    Raises:
        StoreLocked: Another process has written another one since.
    """
    root, name = manifest.shards.root, _state_name(manifest.number)
    if not Objects(root).put_new(name, _write_manifest(manifest)):
        raise StoreLocked(
            f"{name_place(root)}/{name}: another process has changed the manifest. Run the "
            "command again."
        )


def _state_name(number: int) -> str:
    return f"{_STATES}/{number:012}" if number else MANIFEST


def _read_shards(root: str, read: Mapping[str, Any]) -> Shards:
    name, revision, dimension = read["embedder"]
    embedder = EmbedderIdentity(name, revision, int(dimension))
    count = int(read["shards"])
    check_count(count)
    return Shards(root, count, embedder, int(read.get("generation", 0)))


def _write_manifest(manifest: Manifest) -> bytes:
    content: dict[str, Any] = {"ekphory_cluster": _FORM, "hash": _HASH}
    content |= _describe(manifest.shards)
    if manifest.planned is not None:
        content |= {"planned": _describe(manifest.planned), "versions": manifest.versions}
    return json.dumps(content, indent=1).encode()


def _describe(shards: Shards) -> dict[str, Any]:
    embedder = shards.embedder
    names = [embedder.name, embedder.revision, embedder.dimension]
    return {"shards": shards.count, "embedder": names, "generation": shards.generation}


# Who serves a store, for what can be done only while nobody does.

_SERVING = "serving"
_TOLD_EVERY, _TOLD_FOR = 10.0, 60.0


@contextmanager
def announced(root: str) -> Iterator[None]:
    """Tell, as long as the block lasts, that this process serves a store."""
    objects, holder = Objects(root), f"{socket.gethostname()} process {os.getpid()}"
    name = f"{_SERVING}/{uuid.uuid4().hex}"
    ended = threading.Event()

    def tell() -> None:
        content = asdict(_Lease(holder, time.time() + _TOLD_FOR))
        objects.put(name, json.dumps(content).encode())

    def go_on_telling() -> None:
        while not ended.wait(_TOLD_EVERY):
            # The store is fenced without it; this only spares others a surprise.
            with suppress(StoreError):
                tell()

    tell()
    telling = threading.Thread(target=go_on_telling, name="ekphory-serving", daemon=True)
    telling.start()
    try:
        yield
    finally:
        ended.set()
        telling.join()
        objects.delete(name)


def check_unserved(root: str) -> None:
    """Check that nobody serves a store.

    Raises:
        StoreLocked: Somebody does.
    """
    objects = Objects(root)
    for name in objects.names(_SERVING):
        content = objects.get(f"{_SERVING}/{name}")
        told = None if content is None else _read_lease(content, f"{_SERVING}/{name}")
        if told is not None and told.until > time.time():
            raise StoreLocked(
                f"{name_place(root)}: {told.holder} serves it. End `ekphory cluster serve` there, "
                f"and run the command again; where it was killed, after {_TOLD_FOR:.0f} seconds."
            )
        objects.delete(f"{_SERVING}/{name}")


@contextmanager
def hold_shard(
    shards: Shards, shard: int, embedder: EmbeddingModel, *, lease: ShardLease | None = None
) -> Iterator[Engine]:
    """Keep one shard open; handles that open its URI share its lease.

    Args:
        shards: The store.
        shard: The shard's number.
        embedder: What its vectors are made with.
        lease: Its lease, where it is not open yet; None makes one.
    """
    lock = shards.lease(shard) if lease is None else lease
    engine = acquire(shards.uri(shard), embedder, make=partial(make_engine, lock=lock))
    try:
        yield engine
    finally:
        release(engine)


@contextmanager
def hold_all(shards: Shards, embedder: EmbeddingModel) -> Iterator[Engine]:
    """Keep all shards open as one store that is only read; handles that open its URI join it."""
    parts = [shards.uri(shard) for shard in range(shards.count)]
    engine = acquire(shards.root, embedder, make=partial(make_spanning_engine, parts=parts))
    try:
        yield engine
    finally:
        release(engine)


def open_memory(
    uri: str,
    scope: Scope | None = None,
    *,
    embedder: EmbeddingModel,
    reranker: RerankingModel | str | None = None,
) -> Memory:
    """Open a handle on a store of shards.

    A handle that is bound to an org and a project works on the one shard that holds them, with all
    verbs. Any other reads all shards, and finds what one store with all memories would; its writes
    are refused.

    Args:
        uri: Of the store.
        scope: What the handle is bound to; None for nothing.
        embedder, reranker: As `Memory` takes them.

    Raises:
        StoreError: There is no such store.
    """
    bound = scope or Scope()
    shards = open_shards(uri, embedder)
    names = {name: getattr(bound, name) for name in SCOPE_FIELDS}
    if bound.org is not None and bound.project is not None:
        with hold_shard(shards, shards.find(bound.org, bound.project), embedder) as engine:
            return Memory(engine.uri, embedder=embedder, reranker=reranker, **names)
    with hold_all(shards, embedder) as engine:
        return Memory(engine.uri, embedder=embedder, reranker=reranker, **names)
