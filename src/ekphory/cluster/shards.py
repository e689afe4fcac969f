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
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b

from ekphory.cluster.objects import Objects, find_root
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


@dataclass(frozen=True, slots=True)
class _Lease:
    """Who holds an epoch, and until which second since 1970 others leave it alone."""

    holder: str
    until: float


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
        self._begin_writing()
        return time.monotonic() < self._until - self._seconds / 2 or self._renew(self._epoch)

    def _renew(self, epoch: int) -> bool:
        begun = time.monotonic()
        self._put(epoch, until=time.time() + self._seconds)
        # Looked at after it was written, while whoever takes the next one looks in turn at this.
        if self._newest() != epoch:
            self.events["lease_lost"] += 1
            self._lose()
            return False
        self.events["lease_renewed"] += 1
        self._until = begun + self._seconds
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
        self._wait_for(newest, until)
        return newest + 1

    def _wait_for(self, epoch: int, until: float) -> None:
        while True:
            lease = self._read(epoch)
            if lease is None or lease.holder == self._holder or lease.until <= time.time():
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
        return [int(name) for name in self._objects.names(self._folder)]

    def _read(self, epoch: int) -> _Lease | None:
        content = self._objects.get(self._name(epoch))
        if content is None:
            return None
        try:
            return _Lease(**json.loads(content))
        except (ValueError, TypeError) as error:
            raise StoreError(
                f"{self._name(epoch)}: is not a lease ({error}). Delete it once nobody writes."
            ) from error

    def _put(self, epoch: int, *, until: float) -> None:
        self._objects.put(self._name(epoch), self._content(until))

    def _content(self, until: float) -> bytes:
        return json.dumps(asdict(_Lease(self._holder, until))).encode()

    def _name(self, epoch: int) -> str:
        return f"{self._folder}/{epoch:012}"


MANIFEST = "ekphory-cluster.json"
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
        count: How many there are, for the life of the store.
        embedder: What all vectors are made with.
    """

    root: str
    count: int
    embedder: EmbedderIdentity

    def find(self, org: str | None, project: str | None) -> int:
        """Return the number of the shard that holds a project."""
        return find_shard(org, project, shards=self.count)

    def uri(self, shard: int) -> str:
        """Return the Lance URI of one shard."""
        return f"{self.root}/{shard_name(shard)}"

    def lease(self, shard: int, *, seconds: float = LEASE_SECONDS) -> ShardLease:
        """Return the lease of one shard, which nobody holds yet."""
        return ShardLease(Objects(self.root), f"leases/{shard_name(shard)}", seconds=seconds)


def shard_name(shard: int) -> str:
    """Return the name of a shard's folder."""
    return f"shard-{shard:05}"


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
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 1 <= wanted <= MOST_SHARDS:
        raise InvalidInput("shards", wanted, "is out of range", f"Give 1 to {MOST_SHARDS:,}")
    root = find_root(uri)
    objects = Objects(root)
    objects.check_first_write_wins()
    if objects.get(MANIFEST) is None:
        _make(Shards(root, wanted, embedder.identity), objects)
    found = open_shards(root, embedder)
    if count not in (None, found.count):
        remedy = f"Give {found.count}; changing the number of shards is not possible yet"
        raise InvalidInput("shards", count, f"the store there has {found.count}", remedy)
    return found


def _make(shards: Shards, objects: Objects) -> None:
    """Make what is not there yet; the manifest comes last, and says that all of it is there."""
    # Making a table is not as safe as writing to it, so that one process makes all of them.
    making = ShardLease(objects, "leases/making")
    with making.held():
        if objects.get(MANIFEST) is None:
            reserve_root(shards.root, shards=shards.count)
            identity = StoreIdentity(SCHEMA_VERSION, TERMS_VERSION, shards.embedder)
            for shard in range(shards.count):
                LanceStore.open(shards.uri(shard), identity)
                Ledger(shards.uri(shard)).make(judged_to=0)
            objects.put_new(MANIFEST, _write_manifest(shards))
    making.give_back()


def open_shards(uri: str, embedder: EmbeddingModel) -> Shards:
    """Return the shards of a store that was made before.

    Raises:
        StoreError: There is none, or a part of it cannot be read.
        EmbedderMismatch: It was made with another embedder.
    """
    root = find_root(uri)
    content = Objects(root).get(MANIFEST)
    if content is None:
        raise StoreError(
            f"{root}: no store of shards is there. `ekphory cluster import` and `ekphory cluster "
            "serve` make one."
        )
    shards = _read_manifest(root, content)
    if shards.embedder != embedder.identity:
        raise EmbedderMismatch(
            f"{root}: its vectors were made by {shards.embedder}, but it was opened with "
            f"{embedder.identity}. Open it with the embedder {shards.embedder.name!r}."
        )
    return shards


def _write_manifest(shards: Shards) -> bytes:
    embedder = shards.embedder
    content = {
        "ekphory_cluster": _FORM,
        "shards": shards.count,
        "hash": _HASH,
        "embedder": [embedder.name, embedder.revision, embedder.dimension],
    }
    return json.dumps(content, indent=1).encode()


def _read_manifest(root: str, content: bytes) -> Shards:
    try:
        read = json.loads(content)
        if (read["ekphory_cluster"], read["hash"]) != (_FORM, _HASH):
            raise StoreError(f"{root}: was made by a newer ekphory. Upgrade this one.")
        name, revision, dimension = read["embedder"]
        return Shards(root, int(read["shards"]), EmbedderIdentity(name, revision, int(dimension)))
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{root}/{MANIFEST}: is damaged ({error}). Put it back from a copy of the store."
        ) from error


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
    parts = [shards.uri(shard) for shard in range(shards.count)]
    engine = acquire(shards.root, embedder, make=partial(make_spanning_engine, parts=parts))
    try:
        return Memory(shards.root, embedder=embedder, reranker=reranker, **names)
    finally:
        release(engine)
