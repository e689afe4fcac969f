"""Backups: one state of a store, copied while others write, and put back."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from ekphory import legacy
from ekphory.atomic_write import atomic_rename
from ekphory.catalog.database import copy_catalog
from ekphory.errors import InvalidInput, StoreError
from ekphory.filters.tree import Not
from ekphory.service.handles import CATALOG_FILE, catalog_file
from ekphory.store.lance_snapshot import (
    TABLE_FOLDER,
    HeldFile,
    LanceSnapshot,
    StateFiles,
    hold_newest_state,
)
from ekphory.store.protocol import CURRENT
from ekphory.types import now_utc

# What a backup holds: its list of files with their digests, checked when it is read.

CONTENTS_FILE = "ekphory-backup.json"
FORMAT_VERSION = 1
_VERSION_KEY = "ekphory_backup"
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file of a backup: its place, its length and its digest."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a backup holds.

    Attributes:
        ekphory: The version that made it.
        taken_at: When it began, as ISO 8601 in UTC.
        version: Which state of the store it is.
        schema_version, embedder: What the store was made with.
        memories, history: How many memories, and how many earlier versions.
        files: All files but the one that holds this.
    """

    ekphory: str
    taken_at: str
    version: int
    schema_version: int
    embedder: str
    memories: int
    history: int
    files: tuple[FileEntry, ...]

    @property
    def bytes(self) -> int:
        """Length of all files."""
        return sum(entry.bytes for entry in self.files)

    @property
    def has_catalog(self) -> bool:
        """Whether the server's catalog is among them."""
        return any(entry.path == CATALOG_FILE for entry in self.files)


def encode_contents(contents: Contents) -> bytes:
    """Return the text of the file that lists the others."""
    listed = {_VERSION_KEY: FORMAT_VERSION} | asdict(contents)
    return json.dumps(listed, indent=1, ensure_ascii=False).encode() + b"\n"


def decode_contents(text: bytes, *, where: str) -> Contents:
    """Read the file that lists the others.

    Raises:
        StoreError: It is damaged, of a newer ekphory, or names what no backup holds.
    """
    try:
        listed = legacy.rename_keys(json.loads(text))
        if listed.pop(_VERSION_KEY) != FORMAT_VERSION:
            raise StoreError(
                f"{where}: made by a newer ekphory ({listed.get('ekphory')}). "
                "Upgrade it with: pip install --upgrade ekphory"
            )
        files = tuple(FileEntry(**entry) for entry in listed.pop("files"))
        contents = Contents(files=files, **listed)
        usable = all(isinstance(entry.bytes, int) and _is_ours(entry) for entry in files)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise _damaged(where) from error
    if not usable:
        raise _damaged(where)
    return contents


def _is_ours(entry: FileEntry) -> bool:
    """Whether a file may be written where the backup says."""
    path = PurePosixPath(entry.path)
    inside = path.parts[:1] == (TABLE_FOLDER,) or entry.path == CATALOG_FILE
    plain = ".." not in path.parts and "\\" not in entry.path and ":" not in entry.path
    return inside and plain and _SHA256.fullmatch(entry.sha256) is not None


def _damaged(where: str) -> StoreError:
    return StoreError(f"{where}: {CONTENTS_FILE} is damaged. Take another backup of the store.")


# Where backups lie: in a folder, or in one `.tar` file; written wholly or not at all.

ARCHIVE_SUFFIX = ".tar"
_COPIED_BYTES = 1 << 20


class Reads(Protocol):
    """What can be read piece by piece."""

    def read(self, size: int = -1, /) -> bytes:
        """Read up to so many bytes; none at the end."""
        ...


class Sink(Protocol):
    """What a backup is written to."""

    def add(self, path: str, size: int, content: Reads) -> None:
        """Write one file."""
        ...


class Source(Protocol):
    """What a backup is read from."""

    def open(self, path: str) -> IO[bytes]:
        """Open one file.

        Raises:
            FileNotFoundError: It is not there.
        """
        ...


class FolderSink:
    """A folder; each file is durable when it is written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, path: str, size: int, content: Reads) -> None:
        """Write one file."""
        del size
        place = self._folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as stream:
            shutil.copyfileobj(content, stream, _COPIED_BYTES)
            stream.flush()
            os.fsync(stream.fileno())


class ArchiveSink:
    """A tar archive."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive

    def add(self, path: str, size: int, content: Reads) -> None:
        """Write one file."""
        member = tarfile.TarInfo(path)
        member.size = size
        member.mode = 0o600
        # Only `read` is called.
        self._archive.addfile(member, content)


class FolderSource:
    """A folder that holds a backup."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def holds(self, path: str) -> bool:
        """Whether a file is there."""
        return (self._folder / _written(path, self._is_file)).is_file()

    def open(self, path: str) -> IO[bytes]:
        """Open one file."""
        return (self._folder / _written(path, self._is_file)).open("rb")

    def _is_file(self, name: str) -> bool:
        return (self._folder / name).is_file()


class ArchiveSource:
    """A tar archive that holds a backup."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive

    def holds(self, path: str) -> bool:
        """Whether a file is there."""
        return self._is_member(_written(path, self._is_member))

    def open(self, path: str) -> IO[bytes]:
        """Open one file."""
        try:
            content = self._archive.extractfile(_written(path, self._is_member))
        except KeyError as error:
            raise FileNotFoundError(path) from error
        return content or io.BytesIO()

    def _is_member(self, name: str) -> bool:
        return name in self._archive.getnames()


def _written(path: str, is_there: Callable[[str], bool]) -> str:
    """Return the name under which a file of a backup was written."""
    return legacy.find_written_name(path, is_there) if path == CONTENTS_FILE else path


@contextmanager
def sink_at(target: Path) -> Iterator[Sink]:
    """Return what writes a backup to `target`, which appears when all is written and durable.

    Raises:
        InvalidInput: There is something at the target already.
    """
    refuse_taken(target, field="target")
    part = part_beside(target)
    try:
        if target.suffix == ARCHIVE_SUFFIX:
            with _new_archive(part) as archive:
                yield ArchiveSink(archive)
        else:
            part.mkdir(mode=0o700)
            yield FolderSink(part)
        atomic_rename(part, target)
    finally:
        discard(part)


@contextmanager
def _new_archive(part: Path) -> Iterator[tarfile.TarFile]:
    with part.open("xb") as stream:
        part.chmod(0o600)
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
            yield archive
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def source_at(path: Path) -> Iterator[Source]:
    """Open the backup at a path.

    Raises:
        InvalidInput: There is none.
        StoreError: The archive cannot be read.
    """
    if path.is_dir():
        source = FolderSource(path)
        if not source.holds(CONTENTS_FILE):
            raise _no_backup(path, f"the folder holds no {CONTENTS_FILE}")
        yield source
    elif path.is_file():
        with _whole_archive(path) as archive:
            yield archive
    else:
        raise _no_backup(path, "no such file or folder")


@contextmanager
def _whole_archive(path: Path) -> Iterator[ArchiveSource]:
    try:
        with tarfile.open(path, mode="r:") as archive:
            source = ArchiveSource(archive)
            if not source.holds(CONTENTS_FILE):
                raise _no_backup(path, f"the file holds no {CONTENTS_FILE}, its last part")
            yield source
    except tarfile.TarError as error:
        raise StoreError(
            f"{path}: not a whole tar archive ({error}). Take another backup."
        ) from error


def refuse_taken(place: Path, *, field: str) -> None:
    """Refuse a place that holds something already; an empty folder is taken over."""
    if not (place.exists() or place.is_symlink()):
        return
    if not place.is_dir() or any(place.iterdir()):
        raise InvalidInput(
            field, str(place), "there is something already", "Name a new or an empty folder"
        )


def part_beside(place: Path) -> Path:
    """Return a new name beside a place, on the same file system; the folder is made if need be."""
    place.parent.mkdir(parents=True, exist_ok=True)
    return place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}.part")


def discard(part: Path) -> None:
    """Remove what was not put in place."""
    if part.is_dir():
        shutil.rmtree(part)
    else:
        part.unlink(missing_ok=True)


def _no_backup(path: Path, problem: str) -> InvalidInput:
    return InvalidInput("source", str(path), problem, "Name what `ekphory backup` wrote")


# Reading a file while its digest is taken, and telling how far that is.

Progress = Callable[[int, int], None]
"""Is told how many bytes are copied, and of how many."""


@dataclass(slots=True)
class Meter:
    """Counts the bytes of all files.

    Attributes:
        total: How many there will be.
        tell: Is told after every piece.
        done: How many there were.
    """

    total: int
    tell: Progress
    done: int = 0

    def add(self, count: int) -> None:
        """Count some bytes."""
        self.done += count
        self.tell(self.done, self.total)


@dataclass(slots=True)
class Digesting:
    """A stream whose digest is taken as it is read."""

    stream: Reads
    meter: Meter
    length: int = 0
    _hash: hashlib._Hash = field(default_factory=hashlib.sha256)

    def read(self, size: int = -1, /) -> bytes:
        """Read up to so many bytes; none at the end."""
        piece = self.stream.read(size)
        self._hash.update(piece)
        self.length += len(piece)
        self.meter.add(len(piece))
        return piece

    @property
    def sha256(self) -> str:
        """Digest of what was read so far."""
        return self._hash.hexdigest()


def tell_nobody(done: int, total: int) -> None:
    """Take progress that nobody asked for."""
    del done, total


# Taking a backup: one state of a store, copied while others write.


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
        contents = _write_to(sink, state, server, taken_at, on_progress)
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


def _write_to(
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


# Putting a backup back: into a new directory, after every byte of it was checked.


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
            atomic_rename(part, directory)
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
