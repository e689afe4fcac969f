"""The newest version of a Lance table, asked of the table only after somebody else wrote to it."""

from __future__ import annotations

import threading
from pathlib import Path

import lancedb

from ekphory.store.commit_files import CommitFiles
from ekphory.store.lance_errors import told
from ekphory.store.shared_reading import SharedReading

_LAST_VERSION = 2**64 - 1


class NewestVersion:
    """Follows the versions of one table. Safe for several threads.

    Asking the table takes milliseconds, and a look at its folder of commits shows whether there is
    anything to ask: only a file there that is not of a commit of ours.
    """

    def __init__(self, uri: str, table: lancedb.table.Table, *, commits: CommitFiles) -> None:
        """Take a table.

        Args:
            uri: Where the store is, for what errors say.
            table: The table, which is brought to the newest version.
            commits: Its folder of commits.
        """
        self._uri = uri
        self._table = table
        self._commits = commits
        self._guard = threading.Lock()
        self._seen = int(table.version)
        self._seen_commits: frozenset[str] | None = None
        self._own_commits: frozenset[str] = frozenset()
        self._reading = SharedReading(self._read)

    @property
    def seen(self) -> int:
        """Number of the newest version that was seen or written, without looking again."""
        return self._seen

    def get(self) -> int:
        """Give the number of the newest version, of whichever process.

        Raises:
            StoreError: The table cannot be read.
        """
        return self._reading.get()

    def note_own(self, version: int) -> int:
        """Take in a commit of this process; gives the version that was seen before it."""
        with self._guard:
            before, self._seen = self._seen, version
            self._own_commits |= {commit_file(version)}
            return before

    def _read(self) -> int:
        before = version = self._seen
        # Looked at before the table is: a commit in between only makes the next call look again.
        commits = self._commits.names()
        if self._somebody_wrote(commits):
            with told("read", self._uri):
                self._table.checkout_latest()
                version = int(self._table.version)
        with self._guard:
            self._seen_commits = commits
            # A commit of ours that came meanwhile is newer than what the table said.
            if self._seen == before:
                self._seen = version
                self._own_commits = frozenset()
            return self._seen

    def _somebody_wrote(self, commits: frozenset[str] | None) -> bool:
        if commits is None or self._seen_commits is None:
            return True
        return not commits - self._seen_commits <= self._own_commits


def commits_folder(uri: str, table_name: str) -> Path | None:
    """Name the folder into which a table's commits go; None where it is not a local one."""
    return None if "://" in uri else Path(uri) / f"{table_name}.lance" / "_versions"


def commit_file(version: int) -> str:
    """Name the file of a version, as Lance does: the newest comes first in a list of names.

    Tables of an early format have other names, so that every commit there looks like another's.
    """
    return f"{_LAST_VERSION - version:020}.manifest"
