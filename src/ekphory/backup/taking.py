"""Taking a backup: one state of a store, copied while others write."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ekphory.backup.contents import CONTENTS_FILE, Contents, FileEntry, encode_contents
from ekphory.backup.digesting import Digesting, Meter, Progress, tell_nobody
from ekphory.backup.places import Sink, sink_at
from ekphory.catalog.copying import copy_catalog
from ekphory.errors import InvalidInput
from ekphory.moments import now_utc
from ekphory.service.catalog_file import CATALOG_FILE, catalog_file
from ekphory.store.lance_files import TABLE_FOLDER, HeldFile, StateFiles, hold_newest_state


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupReport:
    """What a backup holds.

    Attributes:
        target: The folder or archive.
        taken_at: When it began, as ISO 8601 in UTC.
        version: Which state of the store it is.
        memories, history: How many memories, and how many earlier versions.
        catalog: Whether the server's catalog is in it.
        files, bytes: How many files, and their length.
    """

    target: Path
    taken_at: str
    version: int
    memories: int
    history: int
    catalog: bool
    files: int
    bytes: int


def back_up(
    store: str | Path,
    target: str | Path,
    *,
    catalog: Path | None = None,
    on_progress: Progress = tell_nobody,
) -> BackupReport:
    """Copy a whole store, all scopes together, into a folder or one `.tar` file.

    It holds every write that was acknowledged before it began, and a write of later either wholly
    or not at all. Others go on writing. The target appears when it is whole.

    Args:
        store: The store's directory.
        target: A new or empty folder, or a new file whose name ends with `.tar`.
        catalog: The server's catalog, where it does not lie in the store's directory.
        on_progress: Called with how many bytes are copied, and of how many.

    Raises:
        InvalidInput: There is no store, it is on object storage, or the target is taken.
        StoreError: The store or its catalog cannot be read.
    """
    directory = _directory(store)
    place = Path(target).expanduser().resolve()
    if place.is_relative_to(directory):
        raise InvalidInput("target", str(target), "lies in the store", "Name another place")
    taken_at = now_utc().isoformat()
    # The catalog last, so that it knows the project of every memory.
    with (
        sink_at(place) as sink,
        hold_newest_state(directory) as state,
        _copied_catalog(directory, catalog) as server,
    ):
        contents = _written(sink, state, server, taken_at, on_progress)
        text = encode_contents(contents)
        sink.add(CONTENTS_FILE, len(text), io.BytesIO(text))
    return BackupReport(
        target=place,
        taken_at=taken_at,
        version=contents.version,
        memories=contents.memories,
        history=contents.history,
        catalog=contents.has_catalog,
        files=len(contents.files),
        bytes=contents.bytes,
    )


def _directory(store: str | Path) -> Path:
    name = str(store).removeprefix("file://")
    if "://" in name:
        raise InvalidInput(
            "store",
            name,
            "is on object storage, which keeps copies by means of its own",
            "Use those, or `ekphory export` for the memories of a scope",
        )
    directory = Path(name).expanduser().resolve()
    if not (directory / TABLE_FOLDER).is_dir():
        raise InvalidInput("store", name, "there is no store", "Name another with --store")
    return directory


def _written(
    sink: Sink,
    state: StateFiles,
    server: HeldFile | None,
    taken_at: str,
    on_progress: Progress,
) -> Contents:
    from ekphory import __version__

    held = [*state.files, *([server] if server is not None else [])]
    meter = Meter(sum(file.length for file in held), on_progress)
    return Contents(
        ekphory=__version__,
        taken_at=taken_at,
        version=state.version,
        schema_version=state.identity.schema_version,
        embedder=str(state.identity.embedder),
        memories=state.memories,
        history=state.history,
        files=tuple(_copy(file, sink, meter) for file in held),
    )


def _copy(file: HeldFile, sink: Sink, meter: Meter) -> FileEntry:
    content = Digesting(file.stream, meter)
    sink.add(file.path, file.length, content)
    return FileEntry(path=file.path, bytes=content.length, sha256=content.sha256)


@contextmanager
def _copied_catalog(directory: Path, given: Path | None) -> Iterator[HeldFile | None]:
    """Copy the catalog aside, if there is one, since SQLite must write the copy itself."""
    source = catalog_file(directory, given)
    if given is None and not source.is_file():
        yield None
        return
    if not source.is_file():
        raise InvalidInput("catalog", str(source), "no such file", "Check the path")
    with tempfile.TemporaryDirectory(prefix="ekphory-backup-") as folder, ExitStack() as opened:
        copy = Path(folder) / CATALOG_FILE
        copy_catalog(source, copy)
        stream: IO[bytes] = opened.enter_context(copy.open("rb"))
        yield HeldFile(CATALOG_FILE, copy.stat().st_size, stream)
