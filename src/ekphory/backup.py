"""Backups: one state of a store, copied while others write, and put back."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol

from ekphory import __version__, legacy, resident
from ekphory.atomic_write import sync_file, write_aside
from ekphory.catalog.database import copy_catalog
from ekphory.errors import InvalidInput, StoreError
from ekphory.filters.tree import Not
from ekphory.service.handles import CATALOG_FILE, EMBEDDERS_FOLDER, catalog_file
from ekphory.store import lance_snapshot
from ekphory.store.lance import TABLE_FOLDER
from ekphory.store.ledger import LEDGER_FOLDER
from ekphory.store.protocol import CURRENT
from ekphory.types import Progress, ignore_progress, now_utc

# The list of files with their digests, checked when it is read.

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
        if not all(isinstance(entry.bytes, int) and _is_ours(entry) for entry in files):
            raise ValueError("names a file that is none of a store")
        return Contents(files=files, **listed)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise StoreError(
            f"{where}: {CONTENTS_FILE} is damaged. Take another backup of the store."
        ) from error


def _is_ours(entry: FileEntry) -> bool:
    """Whether a file may be written where the backup says."""
    path = PurePosixPath(entry.path)
    # A store of another embedder lies two folders deeper.
    deeper = 2 if path.parts[:1] == (EMBEDDERS_FOLDER,) else 0
    folders = ((TABLE_FOLDER,), (LEDGER_FOLDER,))
    inside = path.parts[deeper : deeper + 1] in folders or entry.path == CATALOG_FILE
    plain = ".." not in path.parts and "\\" not in entry.path and ":" not in entry.path
    return inside and plain and _SHA256.fullmatch(entry.sha256) is not None


# Where backups lie: in a folder, or in one `.tar` file.

ARCHIVE_SUFFIX = ".tar"
_COPIED_BYTES = 1 << 20


class Reads(Protocol):
    """What can be read piece by piece."""

    def read(self, size: int = -1, /) -> bytes:
        """Read up to so many bytes; none at the end."""


Sink = Callable[[str, int, Reads], None]
"""Writes one file of a backup: its path, its length and its content."""
Source = Callable[[str], IO[bytes]]
"""Opens one file of a backup by its path; raises `FileNotFoundError` where it is not there."""


def _write_to_folder(folder: Path, path: str, _size: int, content: Reads) -> None:
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("wb") as stream:
        shutil.copyfileobj(content, stream, _COPIED_BYTES)
        sync_file(stream)


def _write_to_archive(archive: tarfile.TarFile, path: str, size: int, content: Reads) -> None:
    member = tarfile.TarInfo(path)
    member.size = size
    member.mode = 0o600
    # Only `read` is called.
    archive.addfile(member, content)


def _open_in_folder(folder: Path, path: str) -> IO[bytes]:
    return (folder / path).open("rb")


def _open_in_archive(archive: tarfile.TarFile, path: str) -> IO[bytes]:
    try:
        return archive.extractfile(path) or io.BytesIO()
    except KeyError as error:
        raise FileNotFoundError(path) from error


@contextmanager
def _make_sink(target: Path) -> Iterator[Sink]:
    """Yield what writes a backup to `target`, which appears when all is written and durable.

    Raises:
        InvalidInput: There is something at the target already.
    """
    _refuse_taken(target, field="target")
    with write_aside(target) as part:
        if target.suffix != ARCHIVE_SUFFIX:
            part.mkdir(mode=0o700)
            yield partial(_write_to_folder, part)
            return
        with part.open("xb") as stream:
            part.chmod(0o600)
            with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
                yield partial(_write_to_archive, archive)
            sync_file(stream)


@contextmanager
def _open_backup(path: Path) -> Iterator[tuple[Source, Contents]]:
    """Open the backup at a path, and read its list.

    Raises:
        InvalidInput: There is none.
        StoreError: The archive or its list cannot be read.
    """
    if path.is_dir():
        source = partial(_open_in_folder, path)
        yield source, _read_contents(source, path, lambda name: (path / name).is_file())
    elif path.is_file():
        try:
            with tarfile.open(path, mode="r:") as archive:
                source = partial(_open_in_archive, archive)
                yield source, _read_contents(source, path, archive.getnames().__contains__)
        except tarfile.TarError as error:
            raise StoreError(
                f"{path}: not a whole tar archive ({error}). Take another backup."
            ) from error
    else:
        raise _no_backup(path, "no such file or folder")


def _read_contents(source: Source, path: Path, is_there: Callable[[str], bool]) -> Contents:
    name = legacy.find_written_name(CONTENTS_FILE, is_there)
    if not is_there(name):
        raise _no_backup(path, f"it holds no {CONTENTS_FILE}, the last file of a backup")
    with source(name) as stream:
        return decode_contents(stream.read(), where=str(path))


def _no_backup(path: Path, problem: str) -> InvalidInput:
    return InvalidInput("source", str(path), problem, "Name what `ekphory backup` wrote")


def _refuse_taken(place: Path, *, field: str) -> None:
    """Refuse a place that holds something already; an empty folder is taken over."""
    taken = any(place.iterdir()) if place.is_dir() else place.exists() or place.is_symlink()
    if taken:
        remedy = "Name a new or an empty folder"
        raise InvalidInput(field, str(place), "there is something already", remedy)


def _find_directory(store: str | Path, remedy: str) -> Path:
    name = str(store).removeprefix("file://")
    if "://" in name:
        raise InvalidInput("store", name, "is on object storage or a server", remedy)
    return Path(name).expanduser().resolve()


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


# Taking a backup.


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
    on_progress: Progress = ignore_progress,
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
    directory = _find_directory(store, "Use its own copies, or `ekphory export` for a scope")
    if not (directory / TABLE_FOLDER).is_dir():
        problem = "there is no store"
        raise InvalidInput("store", str(directory), problem, "Name another with --store")
    place = Path(target).expanduser().resolve()
    if place.is_relative_to(directory):
        raise InvalidInput("target", str(target), "lies in the store", "Name another place")
    resident.release(str(directory))
    taken_at = now_utc().isoformat()
    # The catalog last, so that it knows the project of every memory.
    with (
        _make_sink(place) as sink,
        lance_snapshot.hold_newest_state(directory) as state,
        _hold_inner(directory) as inner,
        _copy_catalog(directory, catalog) as server,
    ):
        files = [*state.files, *(file for each in inner for file in each.files)]
        held = [*files, *([server] if server is not None else [])]
        meter = Meter(sum(file.length for file in held), on_progress)
        contents = Contents(
            ekphory=__version__,
            taken_at=taken_at,
            version=state.version,
            schema_version=state.identity.schema_version,
            embedder=str(state.identity.embedder),
            memories=sum(each.memories for each in (state, *inner)),
            history=sum(each.history for each in (state, *inner)),
            files=tuple(_copy(file, sink, meter) for file in held),
        )
        text = encode_contents(contents)
        sink(CONTENTS_FILE, len(text), io.BytesIO(text))
    return BackupReport(target=place, version=contents.version, **_summarise(contents))


@contextmanager
def _hold_inner(directory: Path) -> Iterator[list[lance_snapshot.StateFiles]]:
    """Hold the newest states of the stores of other embedders, with paths below the whole store."""
    with ExitStack() as opened:
        states = []
        for each in _inner_stores(directory):
            state = opened.enter_context(lance_snapshot.hold_newest_state(each))
            below = f"{EMBEDDERS_FOLDER}/{each.name}"
            files = tuple(replace(file, path=f"{below}/{file.path}") for file in state.files)
            states.append(replace(state, files=files))
        yield states


def _inner_stores(directory: Path) -> list[Path]:
    tables = directory.glob(f"{EMBEDDERS_FOLDER}/*/{TABLE_FOLDER}")
    return sorted(each.parent for each in tables)


def _summarise(contents: Contents) -> dict[str, Any]:
    """Return what the reports of a backup and of its restoration have in common."""
    return {
        "taken_at": contents.taken_at,
        "memories": contents.memories,
        "history": contents.history,
        "catalog": contents.has_catalog,
        "files": len(contents.files),
        "bytes": contents.bytes,
    }


def _copy(file: lance_snapshot.HeldFile, sink: Sink, meter: Meter) -> FileEntry:
    content = Digesting(file.stream, meter)
    sink(file.path, file.length, content)
    return FileEntry(path=file.path, bytes=content.length, sha256=content.sha256)


@contextmanager
def _copy_catalog(directory: Path, given: Path | None) -> Iterator[lance_snapshot.HeldFile | None]:
    """Copy the catalog aside, if there is one, since SQLite must write the copy itself."""
    source = catalog_file(directory, given)
    if given is None and not source.is_file():
        yield None
        return
    if not source.is_file():
        raise InvalidInput("catalog", str(source), "no such file", "Check the path")
    with tempfile.TemporaryDirectory(prefix="ekphory-backup-") as folder:
        copy = Path(folder) / CATALOG_FILE
        copy_catalog(source, copy)
        with copy.open("rb") as stream:
            yield lance_snapshot.HeldFile(CATALOG_FILE, copy.stat().st_size, stream)


# Putting a backup back.


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
    source: str | Path,
    store: str | Path,
    *,
    catalog: Path | None = None,
    on_progress: Progress = ignore_progress,
) -> RestoreReport:
    """Make a store of what `back_up` wrote; it appears when all of it is there and proven right.

    Args:
        source: The folder or the `.tar` file.
        store: A new or empty directory.
        catalog: A new file for the server's catalog; None for one in the store's directory.
        on_progress: Called with how many bytes are copied, and of how many.

    Raises:
        InvalidInput: There is no backup, the directory or the catalog is taken, or the backup holds
            no catalog.
        StoreError: A file of the backup is missing or changed; nothing was restored.
    """
    directory = _find_directory(store, "Restore to a directory, and copy that")
    _refuse_taken(directory, field="store")
    if catalog is not None:
        catalog = catalog.expanduser().resolve()
        _refuse_taken(catalog, field="catalog")
    resident.release(str(directory))
    place = Path(source).expanduser().resolve()
    with _open_backup(place) as (opened, contents), write_aside(directory) as part:
        if catalog is not None and not contents.has_catalog:
            problem = "the backup holds no catalog"
            raise InvalidInput("catalog", str(catalog), problem, "Leave it out")
        part.mkdir()
        _copy_all(opened, contents, part, Meter(contents.bytes, on_progress), str(place))
        _check_opened(part, contents, str(place))
        if catalog is not None:
            _move_catalog(part / CATALOG_FILE, catalog)
    return RestoreReport(store=directory, **_summarise(contents))


def _copy_all(source: Source, contents: Contents, part: Path, meter: Meter, where: str) -> None:
    for entry in contents.files:
        try:
            with source(entry.path) as stream:
                content = Digesting(stream, meter)
                _write_to_folder(part, entry.path, entry.bytes, content)
        except FileNotFoundError as error:
            raise _differs(where, entry, "is missing") from error
        if (content.length, content.sha256) != (entry.bytes, entry.sha256):
            raise _differs(where, entry, "is not what was backed up")
    if contents.has_catalog:
        # Holds digests of keys.
        (part / CATALOG_FILE).chmod(0o600)


def _move_catalog(restored: Path, catalog: Path) -> None:
    # It may lie on another disk than the store.
    with write_aside(catalog) as aside:
        aside.touch(mode=0o600)
        shutil.copyfile(restored, aside)
        with aside.open("rb+") as stream:
            sync_file(stream)
    restored.unlink()


def _check_opened(part: Path, contents: Contents, where: str) -> None:
    states = [lance_snapshot.LanceSnapshot(str(each)) for each in (part, *_inner_stores(part))]
    found = tuple(sum(state.count(kind) for state in states) for kind in (CURRENT, Not(CURRENT)))
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
