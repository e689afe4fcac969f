"""Putting a backup back: into a new directory, after every byte of it was checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ekphory.backup.contents import CONTENTS_FILE, Contents, FileEntry, decode_contents
from ekphory.backup.digesting import Digesting, Meter, Progress, tell_nobody
from ekphory.backup.places import (
    FolderSink,
    Source,
    discard,
    part_beside,
    refuse_taken,
    source_at,
)
from ekphory.errors import InvalidInput, StoreError
from ekphory.filters.tree import Not
from ekphory.placing import put_in_place
from ekphory.service.catalog_file import CATALOG_FILE
from ekphory.store.lance_snapshot import LanceSnapshot
from ekphory.store.store import CURRENT


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """What was put back.

    Attributes:
        store: The new store's directory.
        taken_at: When the backup began, as ISO 8601 in UTC.
        memories, history: How many memories, and how many earlier versions.
        catalog: Whether the server's catalog is among it.
        files, bytes: How many files, and their length.
    """

    store: Path
    taken_at: str
    memories: int
    history: int
    catalog: bool
    files: int
    bytes: int


def restore(
    source: str | Path, store: str | Path, *, on_progress: Progress = tell_nobody
) -> RestoreReport:
    """Make a store of what `back_up` wrote; it appears when all of it is there and proven right.

    Args:
        source: The folder or the `.tar` file.
        store: A new or empty directory.
        on_progress: Called with how many bytes are copied, and of how many.

    Raises:
        InvalidInput: There is no backup, or the directory is taken.
        StoreError: A file of the backup is missing or changed; nothing was restored.
    """
    name = str(store).removeprefix("file://")
    if "://" in name:
        raise InvalidInput(
            "store", name, "is on object storage", "Restore to a directory, and copy that"
        )
    directory = Path(name).expanduser().resolve()
    refuse_taken(directory, field="store")
    place = Path(source).expanduser().resolve()
    with source_at(place) as opened:
        with opened.open(CONTENTS_FILE) as stream:
            contents = decode_contents(stream.read(), where=str(place))
        part = part_beside(directory)
        try:
            part.mkdir()
            _copy_all(opened, contents, part, Meter(contents.bytes, on_progress), str(place))
            _check_opened(part, contents, str(place))
            put_in_place(part, directory)
        finally:
            discard(part)
    return RestoreReport(
        store=directory,
        taken_at=contents.taken_at,
        memories=contents.memories,
        history=contents.history,
        catalog=contents.has_catalog,
        files=len(contents.files),
        bytes=contents.bytes,
    )


def _copy_all(source: Source, contents: Contents, part: Path, meter: Meter, where: str) -> None:
    sink = FolderSink(part)
    for entry in contents.files:
        try:
            with source.open(entry.path) as stream:
                content = Digesting(stream, meter)
                sink.add(entry.path, entry.bytes, content)
        except FileNotFoundError as error:
            raise _differs(where, entry, "is missing") from error
        if (content.length, content.sha256) != (entry.bytes, entry.sha256):
            raise _differs(where, entry, "is not what was backed up")
    if contents.has_catalog:
        # Holds digests of keys.
        (part / CATALOG_FILE).chmod(0o600)


def _check_opened(part: Path, contents: Contents, where: str) -> None:
    state = LanceSnapshot(str(part))
    found = (state.count(CURRENT), state.count(Not(CURRENT)))
    if found != (contents.memories, contents.history):
        raise StoreError(
            f"{where}: holds {found[0]:,} memories and {found[1]:,} earlier versions in place of "
            f"{contents.memories:,} and {contents.history:,}. Nothing was restored; take another "
            "backup."
        )


def _differs(where: str, entry: FileEntry, problem: str) -> StoreError:
    return StoreError(
        f"{where}: {entry.path} {problem}. Nothing was restored; take another backup."
    )
