"""Threads that outlive a call, made when first needed and again after a fork."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ekphory.fork_safe import ForkSafeLock

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """Runs a function over items on a bounded number of threads."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._lock = ForkSafeLock()
        self._executor: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    @property
    def threads(self) -> int:
        """Most threads at work at a time."""
        return self._threads

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Apply the function to every item; a single item stays in the caller's thread."""
        if len(items) <= 1 or self._threads == 1:
            return [function(item) for item in items]
        return list(self._running().map(function, items))

    def _running(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None or self._process != os.getpid():
                self._executor = ThreadPoolExecutor(self._threads, "ekphory-embed")
                self._process = os.getpid()
            return self._executor
