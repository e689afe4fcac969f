"""What a forked process must not share with its parent."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import TracebackType
from weakref import WeakSet

_locks: WeakSet[ForkSafeLock] = WeakSet()


class ForkSafeLock:
    """A lock that is free in a forked process, whichever thread of the parent held it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()

    def make_free(self) -> None:
        """Forget who holds it: in a forked process that thread does not exist."""
        self._lock = threading.Lock()


def run_after_fork(action: Callable[[], None]) -> None:
    """Run `action` in every process that is forked from this one, before anything else there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=action)


def _free_all() -> None:
    for lock in _locks:
        lock.make_free()


run_after_fork(_free_all)
