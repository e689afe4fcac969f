"""Where backups lie: in a folder, or in one `.tar` file; written wholly or not at all."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from ekphory import legacy
from ekphory.backup.contents import CONTENTS_FILE
from ekphory.errors import InvalidInput, StoreError
from ekphory.placing import put_in_place

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

    def open(self, path: str) -> IO[bytes]:
        """Open one file."""
        names = self._archive.getnames()
        try:
            content = self._archive.extractfile(_written(path, names.__contains__))
        except KeyError as error:
            raise FileNotFoundError(path) from error
        return content or io.BytesIO()


def _written(path: str, is_there: Callable[[str], bool]) -> str:
    """Return the name under which a file of a backup was written."""
    return legacy.written_name(path, is_there) if path == CONTENTS_FILE else path


@contextmanager
def sink_at(target: Path) -> Iterator[Sink]:
    """Give what writes a backup to `target`, which appears when all is written and durable.

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
        put_in_place(part, target)
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
            yield ArchiveSource(archive)
    else:
        raise _no_backup(path, "no such file or folder")


@contextmanager
def _whole_archive(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(path, mode="r:") as archive:
            if _written(CONTENTS_FILE, archive.getnames().__contains__) not in archive.getnames():
                raise _no_backup(path, f"the file holds no {CONTENTS_FILE}, its last part")
            yield archive
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
    """Give a new name beside a place, on the same file system; the folder is made if need be."""
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
