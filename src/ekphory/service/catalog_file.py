"""Where a store's catalog lies."""

from __future__ import annotations

from pathlib import Path

from ekphory.errors import InvalidInput

CATALOG_FILE = "catalog.sqlite3"


def catalog_file(store: str | Path, given: Path | None = None) -> Path:
    """Give the file of a store's catalog: the one that is given, or one in its directory.

    Raises:
        InvalidInput: The store is on object storage, where no such file can be.
    """
    if given is not None:
        return given.expanduser()
    name = str(store).removeprefix("file://")
    if "://" in name:
        raise InvalidInput(
            "store",
            name,
            "has no directory for the catalog of projects and keys",
            "Name a local file with --catalog",
        )
    return Path(name).expanduser() / CATALOG_FILE
