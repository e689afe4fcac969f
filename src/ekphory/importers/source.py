"""Opening what a user points at: a file, an unpacked export or a zip archive, as checked UTF-8."""

from __future__ import annotations

import codecs
import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ekphory.errors import InvalidInput
from ekphory.importers.record import MAX_UNIT_BYTES

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_EXPORT_MEMBER = re.compile(r"(?:.*/)?conversations(?:[-_]\d+)?\.json")


class CheckedUtf8(io.RawIOBase):
    """A byte stream that raises on invalid UTF-8, naming the line, and drops a leading BOM."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        super().__init__()
        self._stream = stream
        self._name = name
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._lines_before = 0
        self._at_start = True

    def readable(self) -> bool:
        """Say that this stream can be read."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill `buffer` with checked bytes and give their number, 0 at the end.

        Raises:
            InvalidInput: The bytes are not UTF-8.
        """
        target = memoryview(buffer).cast("B")
        data = self._stream.read(len(target))
        self._check(data)
        if self._at_start and data.startswith(codecs.BOM_UTF8):
            data = data[len(codecs.BOM_UTF8) :]
        self._at_start = False
        target[: len(data)] = data
        return len(data)

    def _check(self, data: bytes) -> None:
        try:
            self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            line = self._lines_before + error.object.count(b"\n", 0, error.start) + 1
            raise not_utf8(self._name, line, error) from error
        self._lines_before += data.count(b"\n")


def not_utf8(name: str, line: int, error: UnicodeDecodeError) -> InvalidInput:
    """Build the error for bytes of `name` that are not UTF-8."""
    found = error.object[error.start : error.start + 4]
    return InvalidInput(
        "path", f"{name}:{line}", f"line {line} is not UTF-8 ({found!r})", "Save the file as UTF-8."
    )


def open_exports(path: Path) -> Iterator[tuple[str, io.BufferedReader]]:
    """Open every conversations file of an export, one after the other.

    Args:
        path: A JSON file, the folder of an unpacked export, or its zip archive.

    Yields:
        The name to show for the file, and its bytes, checked to be UTF-8.

    Raises:
        InvalidInput: The archive is broken, encrypted, or holds no conversations.json.
    """
    if path.is_dir():
        for member in conversation_files(path):
            with member.open("rb") as stream:
                yield member.name, io.BufferedReader(CheckedUtf8(stream, member.name))
    elif zipfile.is_zipfile(path) or path.suffix.lower() == ".zip":
        yield from _open_members(path)
    else:
        with path.open("rb") as stream:
            yield path.name, io.BufferedReader(CheckedUtf8(stream, path.name))


def conversation_files(folder: Path) -> list[Path]:
    """List the conversations files that lie directly in the folder of an unpacked export."""
    return sorted(entry for entry in folder.iterdir() if _EXPORT_MEMBER.fullmatch(entry.name))


def _open_members(path: Path) -> Iterator[tuple[str, io.BufferedReader]]:
    with _told_of_bad_archives(path), zipfile.ZipFile(path) as archive:
        for member in _export_members(archive, path):
            name = f"{path.name}/{member.filename}"
            with archive.open(member) as stream:
                yield name, io.BufferedReader(CheckedUtf8(stream, name))


@contextmanager
def _told_of_bad_archives(path: Path) -> Iterator[None]:
    try:
        yield
    except zipfile.BadZipFile as error:
        raise InvalidInput(
            "path", str(path), f"not a readable zip archive ({error})", "Download the export again."
        ) from error


def _export_members(archive: zipfile.ZipFile, path: Path) -> list[zipfile.ZipInfo]:
    files = [member for member in archive.infolist() if not member.is_dir()]
    members = [member for member in files if _EXPORT_MEMBER.fullmatch(member.filename)]
    if not members:
        held = ", ".join(member.filename for member in files[:5]) or "nothing"
        raise InvalidInput(
            "path",
            str(path),
            f"the archive holds no conversations.json (it holds {held})",
            "Give the archive as ChatGPT or Claude sent it, or the JSON file inside it.",
        )
    if any(member.flag_bits & 1 for member in members):
        raise InvalidInput(
            "path", str(path), "the archive is encrypted", "Unpack it and give conversations.json."
        )
    return sorted(members, key=lambda member: member.filename)


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Read a file line by line in bounded memory.

    Yields:
        The line's number, from 1, and its bytes without a leading BOM; None in place of a line
        longer than `MAX_UNIT_BYTES`.
    """
    with path.open("rb") as stream:
        number = 0
        while line := stream.readline(MAX_UNIT_BYTES + 1):
            number += 1
            if len(line) > MAX_UNIT_BYTES and not line.endswith(b"\n"):
                _skip_rest_of_line(stream)
                yield number, None
            else:
                yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def _skip_rest_of_line(stream: IO[bytes]) -> None:
    while (piece := stream.readline(MAX_UNIT_BYTES)) and not piece.endswith(b"\n"):
        pass
