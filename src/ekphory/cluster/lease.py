"""Who may write a shard: a lease with an epoch, and a fence against whoever held it before.

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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from ekphory.cluster.objects import Objects
from ekphory.errors import StoreError, StoreLocked
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
        self._is_writing = True
        try:
            for table in self.tables:
                table.settle_reads()
            self._hold()
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
            raise StoreLocked(
                f"{self._folder}: another process took over while this one was writing. Nothing "
                "was acknowledged; write again."
            ) from cause

    def _hold(self) -> None:
        if self._epoch is not None and time.monotonic() < self._until - self._seconds / 2:
            return
        if self._epoch is None or not self._renew(self._epoch):
            self._take()

    def _renew(self, epoch: int) -> bool:
        begun = time.monotonic()
        self._put(epoch, until=time.time() + self._seconds)
        # Looked at after it was written, while whoever takes the next one looks in turn at this.
        if self._newest() != epoch:
            self._lose()
            return False
        self._until = begun + self._seconds
        return True

    def _take(self) -> None:
        until = time.monotonic() + 2 * self._seconds
        epoch = self._next(until)
        begun = time.monotonic()
        while not self._objects.put_new(self._name(epoch), self._content(self._seconds)):
            epoch = self._next(until)
            begun = time.monotonic()
        # It may have been renewed between the look at it and the next epoch.
        self._wait_for(epoch - 1, until)
        for table in self.tables:
            table.fence()
        if self._newest() != epoch:
            raise StoreLocked(f"{self._folder}: another process began to write. Write again.")
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
        self._objects.put(
            self._name(epoch), json.dumps(asdict(_Lease(self._holder, until))).encode()
        )

    def _content(self, seconds: float) -> bytes:
        return json.dumps(asdict(_Lease(self._holder, time.time() + seconds))).encode()

    def _name(self, epoch: int) -> str:
        return f"{self._folder}/{epoch:012}"
