"""Reading the lines of benchmark files, one at a time, with errors that name file and line."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from io import BufferedReader
from pathlib import Path

from ekphory.errors import DatasetError, InvalidInput, shorten
from ekphory.moments import to_utc

_REMEDY = "Fetch the file again, or correct this line."


@dataclass(frozen=True, slots=True)
class Row:
    """One line's fields, and where it stands.

    Attributes:
        place: File and line, such as `queries.jsonl:17`.
        fields: Value by field name.
    """

    place: str
    fields: dict[str, object]

    def text(self, name: str) -> str:
        """Give a field that must be a text."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise self.error(name, "a text is needed here")
        return value

    def text_or_empty(self, name: str) -> str:
        """Give a text field; a missing or null one is empty."""
        return "" if self.fields.get(name) is None else self.text(name)

    def label(self, name: str) -> str:
        """Give a field that may be a text or a whole number, as a text; a missing one is empty."""
        value = self.fields.get(name)
        return str(value) if _is_integer(value) else self.text_or_empty(name)

    def texts(self, name: str) -> tuple[str, ...]:
        """Give a field that must be a list of texts; a missing one is empty."""
        value = self.fields.get(name, [])
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.error(name, "a list of texts is needed here")
        return tuple(value)

    def integer(self, name: str) -> int | None:
        """Give a whole number; None where it is missing or null."""
        value = self.fields.get(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise self.error(name, "a whole number is needed here")

    def moment(self, name: str) -> datetime | None:
        """Give a moment in UTC; None where it is missing or null."""
        if self.fields.get(name) is None:
            return None
        try:
            return to_utc(self.text(name), field=name)
        except InvalidInput as error:
            raise self.error(name, "an ISO 8601 moment is needed here") from error

    def error(self, name: str, problem: str) -> DatasetError:
        """Build the error for one of this line's fields."""
        value = self.fields.get(name)
        return DatasetError(f"{self.place}: {name}={shorten(value)}: {problem}. {_REMEDY}")


def read_json_lines(path: Path) -> Iterator[Row]:
    """Read JSON Lines, gzipped where the name ends in `.gz`; empty lines are passed over.

    Raises:
        DatasetError: A line is no JSON object, or the file breaks off.
    """
    for place, line in _numbered(path):
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise DatasetError(f"{place}: not JSON ({error}). {_REMEDY}") from error
        if not isinstance(fields, dict):
            raise DatasetError(f"{place}: not a JSON object but {shorten(fields)}. {_REMEDY}")
        yield Row(place, fields)


def read_qrels(path: Path, *, columns: tuple[str, ...]) -> Iterator[tuple[Row, int]]:
    """Read tab-separated qrels whose first line names the columns and whose last is the score.

    Args:
        path: The file.
        columns: The names that the first line must have.

    Yields:
        The line, and its gain.

    Raises:
        DatasetError: The columns are others, or a line does not fit them.
    """
    lines = _numbered(path)
    place, header = next(lines, (f"{path.name}:1", b""))
    if tuple(_cells(place, header)) != columns:
        raise DatasetError(
            f"{place}: the columns are {shorten(header)}, not {', '.join(columns)} "
            f"separated by tabs. {_REMEDY}"
        )
    for place, line in lines:
        cells = _cells(place, line)
        if len(cells) != len(columns):
            raise DatasetError(f"{place}: {len(cells)} cells, not {len(columns)}. {_REMEDY}")
        row = Row(place, dict(zip(columns, cells, strict=True)))
        yield row, _gain(row, columns[-1])


def _gain(row: Row, name: str) -> int:
    try:
        return int(row.text(name))
    except ValueError as error:
        raise row.error(name, "a whole number is needed here") from error


def _cells(place: str, line: bytes) -> list[str]:
    try:
        return line.decode().split("\t")
    except UnicodeDecodeError as error:
        raise DatasetError(f"{place}: not UTF-8 ({error}). {_REMEDY}") from error


def _numbered(path: Path) -> Iterator[tuple[str, bytes]]:
    with _open(path) as stream:
        for number, line in enumerate(_lines(stream, path.name), start=1):
            if line.strip():
                yield f"{path.name}:{number}", line.rstrip(b"\r\n")


def _lines(stream: Iterable[bytes], name: str) -> Iterator[bytes]:
    number = 0
    try:
        for line in stream:
            number += 1
            yield line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DatasetError(
            f"{name}:{number + 1}: the compressed file breaks off or is damaged ({error}). "
            "Fetch the file again."
        ) from error


def _open(path: Path) -> gzip.GzipFile | BufferedReader:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
