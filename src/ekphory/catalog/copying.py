"""Copying a catalog while others write to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from ekphory.errors import StoreError


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
            # Holds digests of keys.
            target.chmod(0o600)
            read.backup(written)
            written.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise StoreError(
            f"{source}: the catalog cannot be copied ({error}). "
            "Check the disk's space and the file's rights."
        ) from error
