"""Capturing what hooks have noted, in a thread of the process that keeps the store open."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

Job = Callable[[], object]
_log = logging.getLogger("ekphory")


class CaptureWorker:
    """Runs jobs one after the other; what waits twice under one name runs once."""

    def __init__(self) -> None:
        self._names: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._jobs: dict[str, Job] = {}
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, name: str, job: Job) -> None:
        """Run a job soon."""
        with self._guard:
            waits = name in self._jobs
            self._jobs[name] = job
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ekphory-captures")
                self._thread.start()
        if not waits:
            self._names.put(name)

    def close(self) -> None:
        """Run what waits, and end."""
        with self._guard:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._names.put(None)
            thread.join()

    def _run(self) -> None:
        while (name := self._names.get()) is not None:
            with self._guard:
                job = self._jobs.pop(name)
            try:
                job()
            except Exception as error:  # noqa: BLE001  the next hook tries again
                _log.warning("a capture failed, which is tried again: %s", error)


_installed: list[CaptureWorker] = []


def install_worker(worker: CaptureWorker) -> None:
    """Let this process capture in a thread of its own; the resident process does."""
    _installed.append(worker)


def find_worker() -> CaptureWorker | None:
    """Return what captures in this process; None where a process of its own has to."""
    return _installed[-1] if _installed else None
