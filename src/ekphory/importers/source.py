"""Opening what a user points at: a file, an unpacked export or an archive."""

from __future__ import annotations

import codecs
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import ijson

from ekphory.documents.blocks import SkippedPart
from ekphory.errors import InvalidInput
from ekphory.types import to_utc

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


MAX_UNIT_BYTES = 20 * 1024 * 1024
"""Longest line, or paragraph, that is read; a longer one is reported and passed over."""


@dataclass(frozen=True, slots=True)
class WholeText:
    """A text whose passages are records of one session, in a row; a newer one takes its place.

    Attributes:
        name: Session of its passages.
        group: What holds it, such as a project, in which its title names it too; empty for none.
        others: Names of all texts that the group holds now.
    """

    name: str
    group: str = ""
    others: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ImportedRecord:
    """One memory-to-be, as an importer found it.

    Attributes:
        fields: Field names of `MemoryRecord` and their values, ready for `Memory.add_many`.
        place: Where it was found, for people: `notes.jsonl:17`.
        part_of: The text that it is a passage of; None for a record of its own.
    """

    fields: dict[str, object]
    place: str
    part_of: WholeText | None = None


@dataclass(frozen=True, slots=True)
class EndedRecord:
    """A record of the same input that no longer holds; it comes after all of them.

    Attributes:
        fields: Its fields, as of an `ImportedRecord`.
        place: Where it was found.
        since: From when on it does not hold.
        successor: Id of the record that holds in its place; None where the input has none.
    """

    fields: dict[str, object]
    place: str
    since: datetime
    successor: str | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """One place of the input that yields no record, with the reason.

    Attributes:
        place: Where it is: `notes.jsonl:17`.
        field: The field at fault, or the unit that is broken (`line`, `message`).
        message: What is wrong and what to do about it.
        content: The beginning of what was found there.
    """

    place: str
    field: str
    message: str
    content: str = ""


Readable: TypeAlias = ImportedRecord | EndedRecord | Unreadable | SkippedPart


# JSON read one element at a time, so that an export of gigabytes fits in memory

_BROKEN = (ijson.JSONError, zipfile.BadZipFile, zlib.error, EOFError)
_HOLDERS = {
    *("item", "conversations", "results", "memories", "items"),
    *("threads", "sessions", "messages", "edges", "facts", "relevant_facts", "episodes"),
}
"""Parts of the path to a record: an array, and the names under which exports keep theirs."""


def stream_elements(path: Path, unit: str) -> Iterator[tuple[str, object] | Unreadable]:
    """Read the elements of a JSON array, or of the `conversations` array of an object.

    A single object counts as its own only element. Where a file breaks off or breaks, all elements
    before that point are given, then one `Unreadable`.

    Args:
        path: As for `open_exports`.
        unit: What an element is called in a report.

    Yields:
        The element's place and the element.
    """
    for name, stream in open_exports(path):
        yield from _number_elements(name, stream, unit)


def _number_elements(
    name: str, stream: io.BufferedReader, unit: str
) -> Iterator[tuple[str, object] | Unreadable]:
    position = 0
    try:
        for element in _read_elements(stream):
            yield f"{name}: {unit} {position}", element
            position += 1
    except _BROKEN as error:
        yield describe_json_error(name, position, error)


def top_level_keys(stream: io.BufferedReader) -> Iterator[str]:
    """Read the keys of the first record of a JSON file, as far as it can be read.

    The first record is the file's own object, or the first element of its array or of an array
    within it that an export keeps its records in, with the keys of what lies around it.
    """
    try:
        for prefix, event, value in _parse(stream):
            if event not in ("map_key", "end_map") or not _leads_to_a_record(prefix):
                continue
            if event == "map_key":
                yield value
            elif prefix:
                return
    except _BROKEN:
        return


def _leads_to_a_record(prefix: str) -> bool:
    parts = prefix.split(".")
    return not prefix or (parts[-1] == "item" and _HOLDERS.issuperset(parts))


def looks_like_json(stream: io.BufferedReader) -> str:
    """Return `[` or `{` where the file opens with one, white space aside, else an empty text."""
    first = stream.peek(4096)[:4096].lstrip()[:1]
    return first.decode() if first in (b"[", b"{") else ""


def describe_json_error(name: str, position: int, error: Exception) -> Unreadable:
    """Report that a JSON file cannot be read from its element `position` on."""
    reason = str(error).strip().splitlines()[0]
    return Unreadable(
        place=f"{name}: element {position}",
        field="conversation",
        message=f"the JSON is broken or cut off after {position} readable elements ({reason}). "
        "Nothing behind this point was read; download the export again and re-run the import.",
    )


def _read_elements(stream: io.BufferedReader) -> Iterator[object]:
    if looks_like_json(stream) == "[":
        yield from ijson.items(_parse(stream), "item")
        return
    for whole in ijson.items(_parse(stream), ""):
        inner = whole.get("conversations") if isinstance(whole, dict) else None
        if isinstance(inner, list):
            yield from inner
        else:
            yield whole


DEEPEST_JSON = 250
"""Levels of JSON that are read: what is built of more cannot be shown, and a path leads to each."""


def _parse(stream: io.BufferedReader) -> Iterator[tuple[str, str, Any]]:
    """Read the events of a JSON file, with the path to each; deep nesting counts as broken."""
    events: Iterator[tuple[str, str, Any]] = ijson.parse(_limit_depth(stream))
    return events


def _limit_depth(stream: io.BufferedReader) -> Iterator[tuple[str, Any]]:
    depth = 0
    for event, value in ijson.basic_parse(stream, use_float=True):
        depth += event.startswith("start_") - (event in ("end_map", "end_array"))
        if depth > DEEPEST_JSON:
            raise ijson.JSONError(f"nested over {DEEPEST_JSON} levels deep")
        yield event, value


CONVERSATIONS = re.compile(r"(?:.*/)?conversations(?:[-_]\d+)?\.json")
"""Names of the files with conversations in an export."""


_PROJECTS = "projects.json"


def holds_projects(path: Path) -> bool:
    """Say whether a folder or an archive holds projects of Claude; conversations may be missing."""
    return (path / _PROJECTS).is_file() if path.is_dir() else _PROJECTS in list_members(path)


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
        data = data.removeprefix(codecs.BOM_UTF8) if self._at_start else data
        self._at_start = False
        target[: len(data)] = data
        return len(data)

    def _check(self, data: bytes) -> None:
        try:
            self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            line = self._lines_before + error.object.count(b"\n", 0, error.start) + 1
            problem = f"line {line} is not UTF-8 ({error.object[error.start : error.start + 4]!r})"
            place = f"{self._name}:{line}"
            raise InvalidInput("path", place, problem, "Save the file as UTF-8.") from error
        self._lines_before += data.count(b"\n")


def open_exports(path: Path) -> Iterator[tuple[str, io.BufferedReader]]:
    """Open every conversations file of an export, one after the other.

    Args:
        path: A JSON file, the folder of an unpacked export, or its zip archive.

    Yields:
        The name to show for the file, and its bytes, checked to be UTF-8.

    Raises:
        InvalidInput: The archive is broken, encrypted, or holds no conversations.json.
    """
    if zipfile.is_zipfile(path) or (path.suffix.lower() == ".zip" and not path.is_dir()):
        for member in _find_members(path):
            name = f"{path.name}/{member}"
            with open_member(path, member) as stream:
                yield name, io.BufferedReader(CheckedUtf8(stream, name))
        return
    for file in conversation_files(path) if path.is_dir() else [path]:
        with file.open("rb") as stream:
            yield file.name, io.BufferedReader(CheckedUtf8(stream, file.name))


def conversation_files(folder: Path) -> list[Path]:
    """List the conversations files that lie directly in the folder of an unpacked export."""
    return sorted(entry for entry in folder.iterdir() if CONVERSATIONS.fullmatch(entry.name))


def list_members(path: Path) -> list[str]:
    """List the files in an archive or below a folder, links left out; a file has none."""
    if path.is_dir():
        inside = (entry for entry in path.rglob("*") if not entry.is_symlink() and entry.is_file())
        return sorted(entry.relative_to(path).as_posix() for entry in inside)
    if not zipfile.is_zipfile(path):
        return []
    with _open_archive(path) as archive:
        return sorted(member.filename for member in archive.infolist() if not member.is_dir())


@contextmanager
def open_member(path: Path, member: str) -> Iterator[IO[bytes]]:
    """Open a file that `list_members` gave."""
    if path.is_dir():
        with (path / member).open("rb") as stream:
            yield stream
        return
    with _open_archive(path) as archive, archive.open(member) as stream:
        yield stream


def stream_member(path: Path, member: str) -> Iterator[tuple[str, object] | Unreadable]:
    """Read the elements of a file that `list_members` gave, as `stream_elements` does."""
    name = f"{path.name}/{member}"
    with open_member(path, member) as stream:
        yield from _number_elements(name, io.BufferedReader(CheckedUtf8(stream, name)), "element")


@contextmanager
def _open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except zipfile.BadZipFile as error:
        problem = f"not a readable zip archive ({error})"
        raise InvalidInput("path", str(path), problem, "Download the export again.") from error


def _find_members(path: Path) -> list[str]:
    """List the conversations files of an archive."""
    with _open_archive(path) as archive:
        files = [member for member in archive.infolist() if not member.is_dir()]
    members = [member for member in files if CONVERSATIONS.fullmatch(member.filename)]
    if not members and all(member.filename != _PROJECTS for member in files):
        held = ", ".join(member.filename for member in files[:5]) or "nothing"
        problem = f"the archive holds no conversations.json (it holds {held})"
        remedy = "Give the archive as ChatGPT or Claude sent it, or the JSON file inside it."
        raise InvalidInput("path", str(path), problem, remedy)
    if any(member.flag_bits & 1 for member in members):
        remedy = "Unpack it and give conversations.json."
        raise InvalidInput("path", str(path), "the archive is encrypted", remedy)
    return sorted(member.filename for member in members)


NumberedLines = Iterator[tuple[int, bytes | None]]


def iterate_numbered_lines(path: Path) -> NumberedLines:
    """Read a file line by line in bounded memory.

    Yields:
        The line's number, from 1, and its bytes without a leading BOM; None in place of a line
        longer than `MAX_UNIT_BYTES`.
    """
    with path.open("rb") as stream:
        yield from number_lines(stream)


def number_lines(stream: IO[bytes]) -> NumberedLines:
    """Do the same with a file that is open."""
    number = 0
    while line := stream.readline(MAX_UNIT_BYTES + 1):
        number += 1
        if len(line) > MAX_UNIT_BYTES and not line.endswith(b"\n"):
            while (piece := stream.readline(MAX_UNIT_BYTES)) and not piece.endswith(b"\n"):
                pass
            yield number, None
        else:
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def stream_lines(path: Path) -> Iterator[tuple[str, bytes] | Unreadable]:
    """Read the lines that are not blank, each with its place; one that is too long is reported."""
    with path.open("rb") as stream:
        yield from stream_opened_lines(stream, path.name)


def stream_opened_lines(stream: IO[bytes], name: str) -> Iterator[tuple[str, bytes] | Unreadable]:
    """Do the same with a file that is open.

    Args:
        stream: Its content.
        name: What places call it.
    """
    for number, line in number_lines(stream):
        place = f"{name}:{number}"
        if line is None:
            yield Unreadable(place, "line", describe_excess_length("line"))
        elif line.strip():
            yield place, line


def describe_excess_length(unit: str) -> str:
    """Say that a line or paragraph is longer than the importers read."""
    return f"the {unit} is longer than 20 MB. Split it into several {unit}s."


def parse_object(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object that is all of a line; None where it is something else."""
    try:
        value = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_text(value: object) -> str:
    """Return a text without the white space around it; an empty one where it is missing."""
    return value.strip() if isinstance(value, str) else ""


def read_list(value: object) -> list[Any]:
    """Return a list; an empty one where it is missing."""
    return value if isinstance(value, list) else []


def read_moment(value: object) -> datetime | None:
    """Read a Unix time in seconds or an ISO 8601 text; None where it is missing or impossible."""
    try:
        if isinstance(value, str):
            return to_utc(value, field="at")
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, tz=UTC)
    except (InvalidInput, ValueError, OverflowError, OSError):
        return None
    return None


CHANGED_AT = "updated_at"
"""Metadata that tells when a record was changed after it was written, ISO 8601."""
