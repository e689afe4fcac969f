"""The one writer of a store: a queue, a lock between processes, and what is due afterwards."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ekphory.errors import StoreClosed, StoreError, StoreLocked
from ekphory.store.lock import WriterLock
from ekphory.store.store import Store
from ekphory.store.upkeep_state import UpkeepFailure, UpkeepState

Item = TypeVar("Item")
Result = TypeVar("Result")

_log = logging.getLogger("ekphory")
# Without this, Python prints warnings of an application that configured no logging.
_log.addHandler(logging.NullHandler())

_QUIET_SECONDS = 1.0
"""After this long without a write, small files are merged."""
_INDEX_ATTEMPTS = 5
_MOST_TOGETHER = 64
"""So many writes that wait are made one commit."""

GroupWrite = Callable[[Sequence[Item]], Sequence[Result]]
"""Writes items in one commit, all or none, and returns a result for each."""


@dataclass(frozen=True, slots=True)
class _Job(Generic[Item, Result]):
    """A write that waits.

    Attributes:
        write: Makes it.
        item: What is written.
        future: Holds its result once it is durable.
        group: Writes of an equal group may be made together; None is made alone.
    """

    write: GroupWrite[Item, Result]
    item: Item
    future: Future[Result]
    group: object = None


class Writer:
    """Runs writes one after another on a thread of its own, under the store's lock.

    The thread starts with the first write and ends with `close`. A write that another process's
    lock keeps waiting for over a minute fails with `StoreLocked`.
    """

    def __init__(
        self,
        store: Store,
        lock: WriterLock,
        *,
        upkeep: UpkeepState | None = None,
        index_pause: float = 2.0,
    ) -> None:
        """Take a store and its lock.

        Args:
            store: What is written to.
            lock: Keeps other processes from writing at the same time.
            upkeep: Where failures of upkeep are counted; None counts them in this process alone.
            index_pause: Seconds before building the index is tried again.
        """
        self._index_pause = index_pause
        self._store = store
        self._lock = lock
        self._upkeep = UpkeepState(None) if upkeep is None else upkeep
        self._jobs: queue.SimpleQueue[_Job[Any, Any] | None] = queue.SimpleQueue()
        self._held_back: list[_Job[Any, Any] | None] = []
        self._thread: threading.Thread | None = None
        self._indexing: threading.Thread | None = None
        self._guard = threading.Lock()
        # Merging files under an index that is being built would void it.
        self._rearranging = threading.Lock()
        self._closing = threading.Event()

    @property
    def upkeep_failure(self) -> UpkeepFailure | None:
        """Upkeep that failed and has not succeeded since; None if all is well."""
        return self._upkeep.failure

    @property
    def is_indexing(self) -> bool:
        """Whether the vector index is being built."""
        return self._indexing is not None and self._indexing.is_alive()

    def submit(self, write: Callable[[], Result]) -> Future[Result]:
        """Queue a write; the future holds its result once it is durable."""
        return self._queued(_Job(lambda _: [write()], None, Future()))

    def submit_to_group(
        self, item: Item, write: GroupWrite[Item, Result], *, group: object
    ) -> Future[Result]:
        """Queue one item's write; it is made together with those of its group that wait beside it.

        Args:
            item: What is written.
            write: Writes items of the group, whoever queued them. If it fails for several, it is
                called for each alone, so that one cannot fail the others.
            group: Equal for writes that may be made together.
        """
        return self._queued(_Job(write, item, Future(), group))

    def _queued(self, job: _Job[Item, Result]) -> Future[Result]:
        with self._guard:
            if self._closing.is_set():
                raise StoreClosed("The store was closed. Open it again to write.")
            self._ensure_thread()
            self._jobs.put(job)
        return job.future

    def repair(self) -> None:
        """Do all upkeep now, and wait for it."""
        self.submit(self._store.repair).result()
        self._upkeep.note_success()

    def build_index_soon(self) -> None:
        """Start building the vector index in the background, unless that is under way."""
        with self._guard:
            if self._closing.is_set() or self.is_indexing:
                return
            self._indexing = threading.Thread(
                target=self._build_index, name="ekphory-indexer", daemon=True
            )
            self._indexing.start()

    def close(self) -> None:
        """Finish what is queued and end the thread."""
        with self._guard:
            self._closing.set()
            if self._thread is not None:
                self._jobs.put(None)
        for thread in (self._thread, self._indexing):
            if thread is not None:
                thread.join()
        self._lock.give_back()

    def _ensure_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ekphory-writer", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        quiet = True
        while True:
            try:
                job = self._next(timeout=None if quiet else _QUIET_SECONDS)
            except queue.Empty:
                self._keep_up(self._store.tidy)
                self._index_where_due()
                quiet = True
                continue
            if job is None:
                if not quiet:
                    self._keep_up(self._store.tidy)
                return
            self._perform(self._with_its_group(job))
            # A finished job holds on to its batch; let it go before waiting again.
            del job
            quiet = False
            # Asked before the lock is taken, which would cost every write.
            if self._store.upkeep_is_due():
                self._keep_up(self._store.maintain)
            self._index_where_due()

    def _next(self, *, timeout: float | None) -> _Job[Any, Any] | None:
        return self._held_back.pop() if self._held_back else self._jobs.get(timeout=timeout)

    def _with_its_group(self, job: _Job[Any, Any]) -> list[_Job[Any, Any]]:
        """Take those that follow it and may be made with it."""
        jobs = [job]
        while job.group is not None and len(jobs) < _MOST_TOGETHER and not self._jobs.empty():
            following = self._jobs.get()
            if following is None or following.group != job.group:
                self._held_back.append(following)
                break
            jobs.append(following)
        return jobs

    def _perform(self, jobs: Sequence[_Job[Any, Any]]) -> None:
        wanted = [job for job in jobs if job.future.set_running_or_notify_cancel()]
        if wanted:
            self._write(wanted)

    def _write(self, jobs: Sequence[_Job[Any, Any]]) -> None:
        try:
            with self._lock.held():
                results = jobs[0].write([job.item for job in jobs])
        except BaseException as error:  # noqa: BLE001  handed to the caller, whatever it is
            if len(jobs) > 1 and not isinstance(error, StoreLocked):
                for job in jobs:
                    self._write([job])
                return
            for job in jobs:
                job.future.set_exception(error)
        else:
            for job, result in zip(jobs, results, strict=True):
                job.future.set_result(result)

    def _keep_up(self, upkeep: Callable[[], None]) -> None:
        if not self._upkeep.is_due or not self._rearranging.acquire(blocking=False):
            return
        # Every write before this is acknowledged already, so a failure here only costs speed.
        try:
            with self._lock.held():
                upkeep()
            self._upkeep.note_success()
        except StoreError as error:
            self._upkeep.note_failure(error)
            _log.warning("upkeep failed and is put off: %s", error)
        finally:
            self._rearranging.release()

    def _index_where_due(self) -> None:
        if self._store.index_is_due():
            self.build_index_soon()

    def _build_index(self) -> None:
        for attempt in range(1, _INDEX_ATTEMPTS + 1):
            try:
                with self._rearranging:
                    self._store.build_index()
                return
            except StoreError as error:
                # Another process may have merged files meanwhile.
                if attempt == _INDEX_ATTEMPTS or self._closing.wait(self._index_pause):
                    _log.warning("the vector index was not built, searches scan instead: %s", error)
                    return
