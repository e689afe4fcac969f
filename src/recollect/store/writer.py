"""The one writer of a store: a queue, a lock between processes, and what is due afterwards."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from recollect.errors import StoreClosed, StoreError
from recollect.store.lock import WriterLock
from recollect.store.store import Store
from recollect.store.upkeep_state import UpkeepFailure, UpkeepState

Result = TypeVar("Result")

_log = logging.getLogger("recollect")
# Without this, Python prints warnings of an application that configured no logging.
_log.addHandler(logging.NullHandler())

_QUIET_SECONDS = 1.0
"""After this long without a write, small files are merged."""
_INDEX_ATTEMPTS = 5


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
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
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
        future: Future[Result] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                with self._lock.held():
                    result = write()
            except BaseException as error:  # noqa: BLE001  handed to the caller, whatever it is
                future.set_exception(error)
            else:
                future.set_result(result)

        with self._guard:
            if self._closing.is_set():
                raise StoreClosed("The store was closed. Open it again to write.")
            self._ensure_thread()
            self._jobs.put(work)
        return future

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
                target=self._build_index, name="recollect-indexer", daemon=True
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
            self._thread = threading.Thread(target=self._run, name="recollect-writer", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        quiet = True
        while True:
            try:
                job = self._jobs.get(timeout=None if quiet else _QUIET_SECONDS)
            except queue.Empty:
                self._keep_up(self._store.tidy)
                self._index_where_due()
                quiet = True
                continue
            if job is None:
                if not quiet:
                    self._keep_up(self._store.tidy)
                return
            job()
            # A finished job holds on to its batch; let it go before waiting again.
            del job
            quiet = False
            # Asked before the lock is taken, which would cost every write.
            if self._jobs.empty() and self._store.upkeep_is_due():
                self._keep_up(self._store.maintain)
            self._index_where_due()

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
