"""Threads and forked processes: how many threads pay off, and what a fork must not share."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from pathlib import Path
from typing import ParamSpec, TypeVar
from weakref import WeakSet

Given = ParamSpec("Given")
Loaded = TypeVar("Loaded")

# Forks.

_locks: WeakSet[ForkSafeLock] = WeakSet()


class ForkSafeLock:
    """A lock that is free in a forked process, whichever thread of the parent held it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
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


def once_a_process(load: Callable[Given, Loaded]) -> Callable[Given, Loaded]:
    """Have a function load once for the same arguments; threads that ask meanwhile wait for it."""
    lock, known = ForkSafeLock(), cache(load)

    @wraps(load)
    def find(*args: Given.args, **named: Given.kwargs) -> Loaded:
        with lock:
            return known(*args, **named)  # type: ignore[arg-type]  # cache asks for what is hashable

    return find


# Cores.

MOST_THREADS = 8
_TOPOLOGY = Path("/sys/devices/system/cpu")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def count_usable_cores(*, topology: Path = _TOPOLOGY, quota: Path = _QUOTA) -> int:
    """Count the physical cores this process may use, at most `MOST_THREADS`.

    Heeds the process's CPU affinity, a container's CPU quota (control groups, version 2), and that
    two hardware threads of one core do no more arithmetic than one. Where the system does not tell,
    the number of its CPUs.

    Args:
        topology: Where Linux describes its CPUs.
        quota: Where Linux tells a container's quota.
    """
    cpus = _allowed_cpus()
    cores = {_core_of(cpu, topology) for cpu in cpus}
    return max(1, min(len(cores), _quota_cores(quota), MOST_THREADS))


def _allowed_cpus() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def _core_of(cpu: int, topology: Path) -> str:
    try:
        return (topology / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text()
    except OSError:
        return str(cpu)


def _quota_cores(quota: Path) -> int:
    try:
        granted, period = quota.read_text().split()
        return math.ceil(int(granted) / int(period))
    except (OSError, ValueError, ZeroDivisionError):  # no quota file, or "max": no limit
        return MOST_THREADS


# Threads that outlive a call.

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """Runs a function over items on a bounded number of threads.

    Attributes:
        threads: Most threads at work at a time.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._lock = ForkSafeLock()
        self._executor: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Apply the function to every item; a single item stays in the caller's thread."""
        if len(items) <= 1 or self.threads == 1:
            return [function(item) for item in items]
        return list(self._running().map(function, items))

    def _running(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None or self._process != os.getpid():
                self._executor = ThreadPoolExecutor(self.threads, "ekphory-embed")
                self._process = os.getpid()
            return self._executor
