"""One reading for all who ask at the same time, never one that began before they asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Read = TypeVar("Read")


class SharedReading(Generic[Read]):
    """Reads something that others may change at any moment. Safe for several threads.

    Who asks while a reading runs waits for the next one, together with all who came meanwhile: what
    they get is at least as new as their question, and many callers cost two readings at a time.
    """

    def __init__(self, read: Callable[[], Read]) -> None:
        """Say what is read.

        Args:
            read: Reads anew; called by one thread at a time.
        """
        self._read = read
        self._reading = threading.Lock()
        self._begun = 0
        self._last: tuple[int, Read] | None = None

    def get(self) -> Read:
        """Give what a reading found that began after this call.

        Raises:
            Exception: Whatever `read` raises; the next caller reads again.
        """
        wanted = self._begun + 1
        with self._reading:
            if self._last is not None and self._last[0] >= wanted:
                return self._last[1]
            self._begun += 1
            number = self._begun
            found = self._read()
            self._last = (number, found)
            return found
