"""The catalog's SQLite file: its tables, opened, brought up to date, read and written."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

from ekphory.errors import EkphoryError, SchemaTooNew, StoreClosed, StoreError


class AlreadyThere(EkphoryError):
    """Something of that name exists already."""


class NotThere(EkphoryError, LookupError):
    """Nothing of that name is there, or nothing that may be seen from here."""


class NotPermitted(EkphoryError):
    """It is there, and may not be done by whoever asks."""


# The tables, and the steps from one version of them to the next.

MIGRATIONS = tuple(
    path.read_text("utf-8") for path in sorted(Path(__file__).with_name("migrations").glob("*.sql"))
)
"""Script number n brings a catalog of version n to version n + 1; they are never changed."""


def copy_catalog(source: Path, target: Path) -> None:
    """Copy one moment of a catalog into a new file, which is whole without files beside it.

    Raises:
        StoreError: It cannot be read or written.
    """
    try:
        with (
            closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as read,
            closing(sqlite3.connect(target)) as written,
        ):
            # Holds digests of keys, and keys of services.
            target.chmod(0o600)
            read.backup(written)
            written.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise StoreError(
            f"{source}: the catalog cannot be copied ({error}). "
            "Check the disk's space and the file's rights."
        ) from error


Value = str | int | float | bytes | None
Durability = Literal["power loss", "crash"]
"""What an acknowledged write outlives."""

_BUSY_MILLISECONDS = 10_000
_NOUNS = {"projects": "Project", "categories": "Category", "tags": "Tag"}
_SYNCHRONOUS: dict[Durability, str] = {"power loss": "FULL", "crash": "NORMAL"}


class Database:
    """One SQLite file. Any number of threads and processes may read and write it.

    SQLite rather than a Lance table: keys and projects need uniqueness, transactions and reads
    of a few microseconds, and none of them is searched by meaning.
    """

    def __init__(
        self,
        path: Path,
        *,
        durability: Durability = "power loss",
        publish: Callable[[bytes], None] | None = None,
    ) -> None:
        """Open the file, and make it where there is none.

        Args:
            path: The file; its directory is made if need be.
            durability: What an acknowledged write outlives; a crash of this process always.
            publish: Called with the whole file before a write is final; where it raises, nothing
                was written.

        Raises:
            StoreError: It cannot be opened, or holds something else.
            SchemaTooNew: It was written by a newer ekphory.
        """
        self._path = path
        self._guard = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._publish: Callable[[bytes], None] | None = None
        with self._translate_errors():
            self._connection = _connect(path, durability)
            self._bring_up_to_date()
        self._publish = publish

    def read(self, statement: str, values: Sequence[Value] = ()) -> list[sqlite3.Row]:
        """Run a SELECT, and return all of its rows."""
        with self._translate_errors():
            return self._open.execute(statement, values).fetchall()

    def insert(self, table: str, values: Mapping[str, Value]) -> int:
        """Add a row, given by the names of its columns; on return it is durable. Return its number.

        Raises:
            AlreadyThere: There is one of that name.
        """
        statement = _insertion("INSERT", table, values)
        try:
            with self.transaction() as connection:
                return connection.execute(statement, tuple(values.values())).lastrowid or 0
        except sqlite3.IntegrityError as error:
            raise AlreadyThere(f"{_NOUNS.get(table, table)} already exists") from error

    def insert_new(self, table: str, rows: Sequence[Mapping[str, Value]]) -> None:
        """Add those rows of equal columns that are not there yet, in one transaction."""
        if rows:
            statement = _insertion("INSERT OR IGNORE", table, rows[0])
            with self.transaction() as connection:
                connection.executemany(statement, [tuple(row.values()) for row in rows])

    def write(self, statement: str, values: Sequence[Value] = ()) -> int:
        """Run one statement that changes rows; on return it is durable. Return how many.

        Raises:
            sqlite3.IntegrityError: It breaks a rule of the tables, such as uniqueness.
        """
        with self.transaction() as connection:
            return connection.execute(statement, values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run several statements that succeed or fail together, alone among all writers."""
        with self._translate_errors():
            connection = self._open
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                if self._publish is not None:
                    self._publish(connection.serialize())
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
    def _translate_errors(self) -> Iterator[None]:
        """Hold the connection, and raise `StoreError` for what SQLite raises in the block."""
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
                for statement in filter(str.strip, script.split(";\n")):
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _connect(path: Path, durability: Durability) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Made with these rights from the start: it holds digests of keys, and keys of services.
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _insertion(verb: str, table: str, values: Mapping[str, Value]) -> str:
    marks = ", ".join("?" * len(values))
    return f"{verb} INTO {table} ({', '.join(values)}) VALUES ({marks})"
