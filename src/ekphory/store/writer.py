"""The one writer of a store, where a write becomes durable: a queue and a lock or lease."""

from __future__ import annotations

import json
import logging
import os
import queue
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import Context, copy_context
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import filelock
import lancedb
import pyarrow as pa

from ekphory.atomic_write import atomic_rename
from ekphory.errors import StoreClosed, StoreError, StoreLocked
from ekphory.spans import TraceSpan
from ekphory.store.lance_table import connect, translate_lance_errors
from ekphory.store.protocol import Store
from ekphory.threads import run_after_fork
from ekphory.types import EPOCH, now_utc

# Failures of upkeep, and when it is tried again.

NOTE_FILE = ".ekphory.upkeep.json"
"""Tells other processes, such as `ekphory doctor`, that upkeep fails."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 600.0


@dataclass(frozen=True, slots=True)
class UpkeepFailure:
    """Upkeep that has failed and not succeeded since.

    Attributes:
        message: The last error.
        attempts: How often it failed.
        since: When it failed first, as ISO 8601.
    """

    message: str
    attempts: int
    since: str

    @property
    def sentence(self) -> str:
        """The failure in words."""
        times = "once" if self.attempts == 1 else f"{self.attempts:,} times"
        return f"Upkeep has failed {times} since {self.since}: {self.message}"


class UpkeepState:
    """Counts failures of upkeep; the pause after each is twice the one before.

    Args:
        directory: Of the store, where a failure is noted; None notes nothing.
    """

    def __init__(self, directory: Path | None) -> None:
        self._note = None if directory is None else directory / NOTE_FILE
        self._failure: UpkeepFailure | None = None
        self._next = time.monotonic()
        self._guard = threading.Lock()

    @property
    def is_due(self) -> bool:
        """Whether upkeep may be tried now; of a directory that was deleted nothing is kept up."""
        is_there = self._note is None or self._note.parent.exists()
        return is_there and time.monotonic() >= self._next

    @property
    def failure(self) -> UpkeepFailure | None:
        """What failed in this process, or was noted by another one; None if all is well."""
        return self._failure or self._read_note()

    def note_failure(self, error: StoreError) -> None:
        """Count a failure, and put off the next try."""
        with self._guard:
            before = self._failure
            attempts = 1 if before is None else before.attempts + 1
            since = now_utc().isoformat() if before is None else before.since
            self._failure = UpkeepFailure(str(error), attempts, since)
            pause = min(_FIRST_PAUSE * 2 ** (attempts - 1), _LONGEST_PAUSE)
            self._next = time.monotonic() + pause
            self._write(self._failure)

    def note_success(self) -> None:
        """Forget earlier failures, also those that another process noted."""
        with self._guard:
            self._failure = None
            self._next = time.monotonic()
            if self._note is not None:
                # What cannot be removed tells of a failure too many, never of one too few.
                with suppress(OSError):
                    self._note.unlink(missing_ok=True)

    def _write(self, failure: UpkeepFailure) -> None:
        if self._note is None:
            return
        part = self._note.with_suffix(".part")
        # Where nothing can be written, the failure is told by this process alone.
        with suppress(OSError):
            part.write_text(json.dumps(asdict(failure)) + "\n", encoding="utf-8")
            atomic_rename(part, self._note)

    def _read_note(self) -> UpkeepFailure | None:
        if self._note is None:
            return None
        try:
            noted = UpkeepFailure(**json.loads(self._note.read_text(encoding="utf-8")))
            if type(noted.attempts) is not int:
                raise TypeError("attempts must be a number")
            return noted
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            return UpkeepFailure(f"{self._note}: cannot be read ({error})", 1, "")


# The writer's lease: on object storage, where no file can be locked, one process may write.
#
# The lease is one row of a Lance table. Commits to a Lance table come one after the other, also on
# object storage, and an update that loses to another is evaluated anew. So the process that
# replaces the row it has read is the writer, until it gives the lease back or lets it run out.
#
# Making a table is not as safe: of two processes that make it in the same moment, the slower one
# replaces what the faster one made. So a new row is left alone until no such process can be under
# way any more.

LEASE_TABLE = "writer_lease"
LEASE_TIME = timedelta(minutes=10)
SETTLING_SECONDS = 1.0
"""So long a new table is left alone: once in the life of a store."""
_NOBODY = ""
# Long enough for every reader of an older version, short enough that few pile up.
_VERSIONS_KEPT = timedelta(hours=1)
_SCHEMA = pa.schema(
    [("holder", pa.string()), ("token", pa.string()), ("until", pa.timestamp("us", tz="UTC"))]
)


@dataclass(frozen=True, slots=True)
class _Lease:
    """The row: who writes until when, under a token that no other row ever had."""

    holder: str
    token: str
    until: datetime


class WriterLease:
    """Held by one process at a time; renewed by its writes, free ten minutes after the last."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._held: _Lease | None = None

    def hold(self) -> None:
        """Make sure that this process may write.

        Raises:
            StoreLocked: Another process holds the lease.
            StoreError: The lease cannot be read or written.
        """
        if self._held is not None and now_utc() < self._held.until - LEASE_TIME / 2:
            return
        with translate_lance_errors("lock", self._uri):
            table = self._table()
            if self._held is None or not self._supersede(table, self._held):
                self._take(table)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lease for one write; it is kept afterwards."""
        self.hold()
        yield

    def give_back(self) -> None:
        """Let the next process write at once."""
        if self._held is not None:
            held, self._held = self._held, None
            with translate_lance_errors("lock", self._uri):
                _replace(self._table(), held, _make_lease(until=EPOCH))

    def _supersede(self, table: lancedb.table.Table, earlier: _Lease) -> bool:
        mine = _make_lease(until=now_utc() + LEASE_TIME)
        self._held = mine if _replace(table, earlier, mine) else None
        return self._held is not None

    def _take(self, table: lancedb.table.Table) -> None:
        while True:
            table.checkout_latest()
            found = _read(table)
            if found.until > now_utc():
                raise StoreLocked(
                    f"{self._uri}: on object storage one process writes at a time, and "
                    f"{found.holder} does until {found.until:%H:%M:%S} UTC. "
                    "Close it there, or wait until its lease has run out."
                )
            if found.holder == _NOBODY:
                time.sleep(SETTLING_SECONDS)
            if self._supersede(table, found):
                return

    def _table(self) -> lancedb.table.Table:
        connection = connect(self._uri)
        try:
            first = _Lease(_NOBODY, uuid.uuid4().hex, EPOCH)
            row = pa.Table.from_pylist([asdict(first)], schema=_SCHEMA)
            return connection.create_table(LEASE_TABLE, data=row)
        except (ValueError, RuntimeError):
            # It is there, or another process is making it; whatever else it is, opening tells.
            return connection.open_table(LEASE_TABLE)


def _replace(table: lancedb.table.Table, found: _Lease, wanted: _Lease) -> bool:
    """Replace the row, unless another process has done so since it was read."""
    # The update must see a table that was made anew since.
    table.checkout_latest()
    result = table.update(where=f"token = '{found.token}'", values=asdict(wanted))
    replaced = int(result.rows_updated) == 1
    if replaced:
        table.optimize(cleanup_older_than=_VERSIONS_KEPT)
    return replaced


def _read(table: lancedb.table.Table) -> _Lease:
    (row,) = table.to_arrow().to_pylist()
    # Goes into a condition, so it must be what we wrote.
    return _Lease(row["holder"], uuid.UUID(row["token"]).hex, row["until"])


def _make_lease(*, until: datetime) -> _Lease:
    return _Lease(f"{socket.gethostname()} process {os.getpid()}", uuid.uuid4().hex, until)


# The lock between writing processes.

LOCK_FILE = ".ekphory.lock"
LOCK_SECONDS = 60.0
_TOLD_AFTER = 3.0
"""After so many seconds of waiting for another process it is told which one."""
_POLL_SECONDS = 0.005
_PROCESS_AT, _PROCESS_DIGITS = 1, 10
"""Where the lock file says which process holds it; Windows locks the byte before it."""
_open_files: set[int] = set()


class DirectoryLock:
    """A lock on a file in the store's directory, held for each write alone."""

    def __init__(self, directory: Path, *, name: str = LOCK_FILE) -> None:
        self._directory = directory
        self._name = name

    @contextmanager
    def held(self, *, seconds: float | None = None) -> Iterator[None]:
        """Hold the lock in the block, after waiting for it at most so long; None for a minute.

        Raises:
            StoreLocked: Another process holds it for longer.
            StoreError: The lock cannot be taken at all.
        """
        lock_file = self._open()
        _open_files.add(lock_file)
        try:
            self._wait_for(lock_file, LOCK_SECONDS if seconds is None else seconds)
            try:
                # On a full disk the lock holds all the same, and what frees space needs it.
                with suppress(OSError):
                    os.lseek(lock_file, _PROCESS_AT, os.SEEK_SET)
                    os.write(lock_file, f"{os.getpid():{_PROCESS_DIGITS}d}".encode())
                yield
            finally:
                # Closing alone would leave it with a child that was forked meanwhile.
                filelock.unlock_descriptor(lock_file)
        finally:
            _open_files.discard(lock_file)
            os.close(lock_file)

    def give_back(self) -> None:
        """Nothing outlasts a write."""

    def _open(self) -> int:
        try:
            # Where the directory is gone this fails: no lock is made behind the remover's back.
            return os.open(self._directory / self._name, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError as error:
            raise StoreError(
                f"{self._directory}: cannot be written, since the directory is gone. "
                "Check whether it was moved or deleted, and open the store anew."
            ) from error
        except OSError as error:
            raise self._make_error(error) from error

    def _wait_for(self, lock_file: int, seconds: float) -> None:
        began = time.monotonic()
        told = False
        try:
            # FileLock does the same, but takes ten times as long where nobody holds the lock.
            while not filelock.lock_descriptor(lock_file, blocking=False):
                waited = time.monotonic() - began
                if waited > seconds:
                    raise StoreLocked(
                        f"{self._directory}: {_read_holder(lock_file)} has been writing for over "
                        f"{seconds:.0f} seconds. Wait for it, or end it."
                    )
                if waited > _TOLD_AFTER and not told:
                    told = True
                    holder = _read_holder(lock_file)
                    _log.warning("%s: waiting for %s, which is writing", self._directory, holder)
                time.sleep(_POLL_SECONDS)
        except OSError as error:
            raise self._make_error(error) from error

    def _make_error(self, error: OSError) -> StoreError:
        return StoreError(
            f"{self._directory}: cannot be written ({error}). "
            "Check the disk's space and the directory's permissions."
        )


def _read_holder(lock_file: int) -> str:
    """Return which process holds a lock, as far as its file says."""
    os.lseek(lock_file, _PROCESS_AT, os.SEEK_SET)
    number = os.read(lock_file, _PROCESS_DIGITS).decode(errors="replace").strip()
    return f"process {number}" if number.isdigit() else "another process"


def _close_parents_files() -> None:
    # A fork that kept them would hold the parent's lock after the parent's death.
    for lock_file in _open_files:
        os.close(lock_file)
    _open_files.clear()


run_after_fork(_close_parents_files)


class WriterLock(Protocol):
    """Keeps others from writing."""

    def held(self) -> AbstractContextManager[None]:
        """Hold it for one write; where leaving the block raises, the write may have failed."""

    def give_back(self) -> None:
        """Let the next process write at once."""


class Fenced(Protocol):
    """A table whose writers take turns."""

    def settle_reads(self) -> None:
        """Wait until no thread is looking for a newer version any more."""

    def fence(self) -> None:
        """Make what others have begun to write fail, and read what they had finished."""


class FencedLock(WriterLock, Protocol):
    """A lock that another process may take over, after which nothing is written under it.

    Attributes:
        tables: What is written under it; each is fenced when it is taken.
    """

    tables: list[Fenced]

    def is_sole(self) -> bool:
        """Whether nobody else can have written since this process last did.

        It holds while a write is under way: one that went on from a newer version than the one
        under which the lock was taken would come past the fence of whoever took it since.
        """


def make_lock(uri: str) -> WriterLock:
    """Return the kind of lock that works at this URI."""
    return WriterLease(uri) if "://" in uri else DirectoryLock(Path(uri))


# The writer itself.

Item = TypeVar("Item")
Result = TypeVar("Result")

_log = logging.getLogger("ekphory")
# Without this, Python prints warnings of an application that configured no logging.
_log.addHandler(logging.NullHandler())

_QUIET_SECONDS = 1.0
"""After this long without a write, small files are merged."""
_INDEX_ATTEMPTS, _INDEX_PAUSE = 5, 2.0
"""So often building the index is tried, after so many seconds."""
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
        context: Of whoever queued it, so that its span lies inside of theirs.
    """

    write: GroupWrite[Item, Result]
    item: Item
    future: Future[Result]
    group: object = None
    context: Context = field(default_factory=copy_context)


class Writer:
    """Runs writes one after another on a thread of its own, under the store's lock.

    The thread starts with the first write and ends with `close`. A write that another process's
    lock keeps waiting for over a minute fails with `StoreLocked`.
    """

    def __init__(
        self, store: Store, lock: WriterLock, *, upkeep: UpkeepState | None = None
    ) -> None:
        """Take a store and its lock.

        Args:
            store: What is written to.
            lock: Keeps other processes from writing at the same time.
            upkeep: Where failures of upkeep are counted; None counts them in this process alone.
        """
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
        return self._queue(_Job(lambda _: [write()], None, Future()))

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
        return self._queue(_Job(write, item, Future(), group))

    def _queue(self, job: _Job[Item, Result]) -> Future[Result]:
        with self._guard:
            if self._closing.is_set():
                raise StoreClosed("The store was closed. Open it again to write.")
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="ekphory-writer", daemon=True
                )
                self._thread.start()
            self._jobs.put(job)
        return job.future

    def repair(self) -> None:
        """Do all upkeep now, and wait for it."""
        with TraceSpan("upkeep", work="repair"):
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

    def _run(self) -> None:
        quiet = True
        while True:
            try:
                job = self._next(timeout=None if quiet else _QUIET_SECONDS)
            except queue.Empty:
                self._keep_up(self._store.tidy)
                self._build_index_if_due()
                quiet = True
                continue
            if job is None:
                if not quiet:
                    self._keep_up(self._store.tidy)
                return
            self._perform(self._take_group(job))
            # A finished job holds on to its batch; let it go before waiting again.
            del job
            quiet = False
            # Asked before the lock is taken, which would cost every write.
            if self._store.upkeep_is_due():
                self._keep_up(self._store.maintain)
            self._build_index_if_due()

    def _next(self, *, timeout: float | None) -> _Job[Any, Any] | None:
        return self._held_back.pop() if self._held_back else self._jobs.get(timeout=timeout)

    def _take_group(self, job: _Job[Any, Any]) -> list[_Job[Any, Any]]:
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
            wanted[0].context.run(self._write, wanted)

    def _write(self, jobs: Sequence[_Job[Any, Any]]) -> None:
        try:
            with TraceSpan("commit", writes=len(jobs)), self._lock.held():
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
            self._store.note_newest()  # nobody waits for it

    def _keep_up(self, upkeep: Callable[[], None]) -> None:
        if not self._upkeep.is_due or not self._rearranging.acquire(blocking=False):
            return
        # Every write before this is acknowledged already, so a failure here only costs speed.
        try:
            with TraceSpan("upkeep", work=upkeep.__name__), self._lock.held():
                upkeep()
            self._upkeep.note_success()
        except StoreError as error:
            self._upkeep.note_failure(error)
            _log.warning("upkeep failed and is put off: %s", error)
        finally:
            self._rearranging.release()

    def _build_index_if_due(self) -> None:
        if self._store.index_is_due():
            self.build_index_soon()

    def _build_index(self) -> None:
        for attempt in range(1, _INDEX_ATTEMPTS + 1):
            try:
                with self._rearranging, TraceSpan("upkeep", work="build_index"):
                    self._store.build_index()
                return
            except StoreError as error:
                # Another process may have merged files meanwhile.
                if attempt == _INDEX_ATTEMPTS or self._closing.wait(_INDEX_PAUSE):
                    _log.warning("the vector index was not built, searches scan instead: %s", error)
                    return
