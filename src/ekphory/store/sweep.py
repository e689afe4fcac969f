"""Removing the files of a Lance table that no version needs: left by kills, merges and purges.

Lance's own cleanup goes by the clock and passes over what a killed write left behind. Here versions
are chosen by their number, and a file stays only if a version that is kept names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ekphory.errors import StoreError, StoreLocked
from ekphory.store.lock import DirectoryLock
from ekphory.store.manifest import manifests_in, needed_files

INDEX_LOCK_FILE = ".ekphory.index.lock"
"""Held while an index is built, which happens beside the writer's lock."""
_HINT = "latest_version_hint.json"


@dataclass(frozen=True, slots=True)
class Swept:
    """What was removed.

    Attributes:
        files: How many files.
        bytes: Their size.
    """

    files: int
    bytes: int


def index_lock(directory: Path) -> DirectoryLock:
    """Return the lock that whoever builds an index holds, so that its files are left alone."""
    return DirectoryLock(directory, name=INDEX_LOCK_FILE)


def sweep_table(table: Path, *, keep_from: int) -> Swept:
    """Remove what no version from `keep_from` on needs; the caller holds the writer's lock.

    Args:
        table: The folder of the Lance table.
        keep_from: The oldest version that stays readable; the newest one always does.

    Raises:
        StoreLocked: An index is being built for longer than a lock is waited for.
        StoreError: A file cannot be read or removed.
    """
    with index_lock(table.parent).held():
        return _remove(_unneeded(table, keep_from=keep_from), table=table)


def sweep_if_free(table: Path, *, keep_from: int) -> Swept | None:
    """Do as `sweep_table`, but return None at once where an index is being built."""
    try:
        with index_lock(table.parent).held(seconds=0):
            return _remove(_unneeded(table, keep_from=keep_from), table=table)
    except StoreLocked:
        return None


def _unneeded(table: Path, *, keep_from: int) -> list[Path]:
    manifests = manifests_in(table / "_versions")
    newest = max(manifests, default=None)
    if newest is None:
        raise StoreError(
            f"{table / '_versions'}: holds no version of the table, so nothing is removed. "
            "Restore a backup with `ekphory restore`."
        )
    needed = {table / "_versions" / _HINT}
    for number, path in manifests.items():
        if number >= min(keep_from, newest):
            needed.add(path)
            needed.update(needed_files(table, path.read_bytes()))
    return [path for path in table.rglob("*") if path.is_file() and path not in needed]


def _remove(files: Sequence[Path], *, table: Path) -> Swept:
    total = 0
    try:
        for path in files:
            total += path.stat().st_size
            path.unlink()
    except OSError as error:
        raise StoreError(
            f"{error.filename}: cannot be removed ({error.strerror}). Check the permissions of the "
            "store's folder, and repeat."
        ) from error
    _remove_empty_folders(table)
    return Swept(len(files), total)


def _remove_empty_folders(table: Path) -> None:
    for folder in sorted((table / "_indices").glob("*/"), reverse=True):
        # One that holds a file stays.
        with suppress(OSError):
            folder.rmdir()
