"""The files that commits leave behind: they tell, in a moment, that nobody wrote to a table."""

from __future__ import annotations

from pathlib import Path


class CommitFiles:
    """Lists the folder into which every commit of a Lance table puts a file of a new name.

    Lance itself finds the newest version by this list, but takes milliseconds to open it.
    """

    def __init__(self, folder: Path | None) -> None:
        """Name the folder; None where there is no local one."""
        self._folder = folder

    def names(self) -> frozenset[str] | None:
        """Give the names; None where they cannot be listed, so that the table must be asked."""
        if self._folder is None:
            return None
        try:
            return frozenset(each.name for each in self._folder.iterdir())
        except OSError:
            # The table says what is wrong, and better.
            return None
