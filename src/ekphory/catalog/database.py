"""The catalog's SQLite file: opened, brought up to date, read and written."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from ekphory.catalog.schema import MIGRATIONS
from ekphory.errors import SchemaTooNew, StoreClosed, StoreError

Value = str | int | float | bytes | None
Durability = Literal["power loss", "crash"]
"""What an acknowledged write outlives."""

_BUSY_MILLISECONDS = 10_000
_SYNCHRONOUS: dict[Durability, str] = {"power loss": "FULL", "crash": "NORMAL"}


class Database:
    """One SQLite file. Any number of threads and processes may read and write it.

    SQLite rather than a Lance table: keys and projects need uniqueness, transactions and reads
    of a few microseconds, and none of them is searched by meaning.
    """

    def __init__(self, path: Path, *, durability: Durability = "power loss") -> None:
        """Open the file, and make it where there is none.

        Args:
            path: The file; its directory is made if need be.
            durability: What an acknowledged write outlives; a crash of this process always.

        Raises:
            StoreError: It cannot be opened, or is no catalog.
            SchemaTooNew: It was written by a newer ekphory.
        """
        self._path = path
        self._guard = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        with self._told():
            self._connection = _connected(path, durability)
            self._bring_up_to_date()

    def read(self, statement: str, values: Sequence[Value] = ()) -> list[sqlite3.Row]:
        """Run a SELECT, and give all of its rows."""
        with self._told():
            return self._open.execute(statement, values).fetchall()

    def write(self, statement: str, values: Sequence[Value] = ()) -> int:
        """Run one statement that changes rows; on return it is durable. Gives how many rows.

        Raises:
            sqlite3.IntegrityError: It breaks a rule of the tables, such as uniqueness.
        """
        with self.transaction() as connection:
            return connection.execute(statement, values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run several statements that succeed or fail together, alone among all writers."""
        with self._told():
            connection = self._open
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file; further calls raise `StoreClosed`."""
        with self._guard:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @property
    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreClosed(f"{self._path}: the catalog was closed. Open the service again.")
        return self._connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Hold the connection, and tell SQLite's errors in this package's words."""
        with self._guard:
            try:
                yield
            except sqlite3.IntegrityError:
                raise
            except (sqlite3.Error, OSError) as error:
                raise StoreError(
                    f"{self._path}: the catalog cannot be used ({error}). "
                    "Check the disk's space and the file's rights, or restore it from a backup."
                ) from error

    def _bring_up_to_date(self) -> None:
        with self.transaction() as connection:
            version: int = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > len(MIGRATIONS):
                raise SchemaTooNew(
                    f"{self._path}: the catalog has version {version}, this ekphory knows "
                    f"{len(MIGRATIONS)}. Upgrade ekphory."
                )
            for script in MIGRATIONS[version:]:
                for statement in _statements(script):
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _connected(path: Path, durability: Durability) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Made with these rights from the start, since it holds digests of keys.
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _statements(script: str) -> Iterator[str]:
    """Split a script; `executescript` would end the transaction around it."""
    return (statement for statement in script.split(";\n") if statement.strip())
