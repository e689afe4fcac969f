"""The lock between writing processes: a file lock in a directory, a lease on object storage."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import filelock

from ekphory.errors import StoreError, StoreLocked
from ekphory.fork_safe import run_after_fork
from ekphory.store.lease import WriterLease

LOCK_FILE = ".ekphory.lock"
LOCK_SECONDS = 60.0
_POLL_SECONDS = 0.005
_open_files: set[int] = set()


class WriterLock(Protocol):
    """Lets one process write at a time."""

    def held(self) -> AbstractContextManager[None]:
        """Hold the lock for one write.

        Raises:
            StoreLocked: Another process holds it for too long.
            StoreError: The lock cannot be taken at all.
        """
        ...

    def give_back(self) -> None:
        """Let go of what outlasts a single write."""
        ...


class DirectoryLock:
    """A lock on a file in the store's directory, held for each write alone."""

    def __init__(self, directory: Path, *, name: str = LOCK_FILE) -> None:
        self._directory = directory
        self._name = name

    @contextmanager
    def held(self, *, seconds: float | None = None) -> Iterator[None]:
        """Hold the lock in the block, after waiting for it at most so long; None for a minute."""
        lock_file = self._opened()
        _open_files.add(lock_file)
        try:
            self._wait_for(lock_file, LOCK_SECONDS if seconds is None else seconds)
            try:
                yield
            finally:
                # Closing alone would leave it with a child that was forked meanwhile.
                filelock.unlock_descriptor(lock_file)
        finally:
            _open_files.discard(lock_file)
            os.close(lock_file)

    def give_back(self) -> None:
        """Nothing outlasts a write."""

    def _opened(self) -> int:
        try:
            # Where the directory is gone this fails: no lock is made behind the remover's back.
            return os.open(self._directory / self._name, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError as error:
            raise StoreError(
                f"{self._directory}: cannot be written, since the directory is gone. "
                "Check whether it was moved or deleted, and open the store anew."
            ) from error
        except OSError as error:
            raise self._unwritable(error) from error

    def _wait_for(self, lock_file: int, seconds: float) -> None:
        until = time.monotonic() + seconds
        try:
            # FileLock does the same, but takes ten times as long where nobody holds the lock.
            while not filelock.lock_descriptor(lock_file, blocking=False):
                if time.monotonic() > until:
                    raise StoreLocked(
                        f"{self._directory}: another process has been writing for over "
                        f"{seconds:.0f} seconds. Wait for it, or end it."
                    )
                time.sleep(_POLL_SECONDS)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> StoreError:
        return StoreError(
            f"{self._directory}: cannot be written ({error}). "
            "Check the disk's space and the directory's permissions."
        )


def _close_parents_files() -> None:
    # A fork that kept them would hold the parent's lock after the parent's death.
    for lock_file in _open_files:
        os.close(lock_file)
    _open_files.clear()


run_after_fork(_close_parents_files)


class LeaseLock:
    """A lease on object storage, kept between writes."""

    def __init__(self, uri: str) -> None:
        self._lease = WriterLease(uri)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Take or renew the lease."""
        self._lease.hold()
        yield

    def give_back(self) -> None:
        """End the lease, so that the next process need not wait for it to run out."""
        self._lease.give_back()


def lock_for(uri: str) -> WriterLock:
    """Give the kind of lock that works at this URI."""
    return LeaseLock(uri) if "://" in uri else DirectoryLock(Path(uri))
