"""The files that commits leave behind: they tell, in a moment, that nobody wrote to a table."""

from __future__ import annotations

import os
import time
from pathlib import Path

_SETTLED_NANOSECONDS = 3_000_000_000
"""A folder's time of change is exact to this, on the coarsest of file systems."""


class CommitFiles:
    """Lists the folder into which every commit of a Lance table puts a file of a new name.

    Lance itself finds the newest version by this list, but takes milliseconds to open it.
    """

    def __init__(self, folder: Path | None) -> None:
        """Name the folder; None where there is no local one."""
        self._folder = folder
        self._settled: tuple[tuple[int, int], frozenset[str]] | None = None

    def names(self) -> frozenset[str] | None:
        """Give the names; None where they cannot be listed, so that the table must be asked.

        They cannot on Windows, which opens no folder.
        """
        if self._folder is None:
            return None
        now = time.time_ns()
        try:
            found = _opened_status(self._folder)
            seen = found.st_ino, found.st_mtime_ns
            if self._settled is not None and self._settled[0] == seen:
                return self._settled[1]
            names = frozenset(os.listdir(self._folder))  # noqa: PTH208  likewise
        except OSError:
            # The table says what is wrong, and better.
            return None
        # What comes after this list changes the folder's time, unless it comes in the same tick.
        is_settled = now - found.st_mtime_ns > _SETTLED_NANOSECONDS
        self._settled = (seen, names) if is_settled else None
        return names


def _opened_status(folder: Path) -> os.stat_result:
    """Open a folder for its status: network file systems look anew only at what is opened."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        return os.fstat(opened)
    finally:
        os.close(opened)
