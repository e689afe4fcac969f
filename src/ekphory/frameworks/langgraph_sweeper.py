"""A thread that deletes what has expired, again and again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from ekphory.errors import StoreClosed, StoreError

_log = logging.getLogger("ekphory")


class Sweeper:
    """Calls `sweep` every so many minutes until it is stopped or the store is closed."""

    def __init__(self, sweep: Callable[[], int], *, minutes: float) -> None:
        self._sweep = sweep
        self._seconds = minutes * 60
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ekphory-sweeper", daemon=True)
        self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """End the thread; False where it is still at work after that many seconds."""
        self._stopped.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            try:
                self._sweep()
            except StoreClosed:
                return
            except StoreError as error:
                # What has expired is hidden already, so nobody but the disk waits for this.
                _log.warning("expired items are deleted later: %s", error)
