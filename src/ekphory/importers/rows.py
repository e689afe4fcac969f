"""Rows of other products' exports: JSON, or JSON Lines, in whatever lists they lie."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from ekphory.errors import InvalidInput
from ekphory.importers.chat import read_moment
from ekphory.importers.json_stream import stream_elements
from ekphory.importers.jsonl import too_long
from ekphory.importers.record import ImportedRecord, Readable, Unreadable
from ekphory.importers.source import numbered_lines, open_exports

_LINES_SUFFIXES = (".jsonl", ".ndjson")
_DEEPEST = 3
"""How many lists may lie within each other."""


@dataclass(frozen=True, slots=True)
class Row:
    """One object of an export that stands for a memory.

    Attributes:
        value: The object.
        place: Where it is, for people.
        around: What the objects say whose lists hold it, the inner ones first.
    """

    value: Mapping[str, object]
    place: str
    around: Mapping[str, object] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Give a text without the white space around it.

        Raises:
            InvalidInput: It is missing or empty.
        """
        found = self.value.get(name)
        if not isinstance(found, str) or not found.strip():
            raise InvalidInput(name, found, "no text here", f"Give {name} a text")
        return found.strip()

    def moment(self, *names: str) -> datetime:
        """Give the first of these moments that is there.

        Raises:
            InvalidInput: None is there, or it cannot be read.
        """
        for name in names:
            value = self.value.get(name)
            if value is not None:
                return moment_of(name, value)
        raise InvalidInput(names[-1], None, "no moment here", f"Add {names[-1]}, in ISO 8601")

    def name(self, *names: str) -> str | None:
        """Give the first of these that is a text, of the row, else of what is around it."""
        for values in (self.value, self.around):
            for name in names:
                found = values.get(name)
                if isinstance(found, str) and found.strip():
                    return found
        return None


@dataclass(frozen=True, slots=True)
class RowFormat:
    """How a product's rows are found and read.

    Attributes:
        lists: Names of the lists that may hold rows, or objects with such lists.
        is_row: Whether an object is a row.
        expected: What a row has, for the report of an object that is none.
        fields_of: Gives the fields of the memory, None where there is none in the row; raises
            InvalidInput where the row is broken.
    """

    lists: tuple[str, ...]
    is_row: Callable[[Mapping[str, object]], bool]
    expected: str
    fields_of: Callable[[Row], dict[str, object] | None]


def read_rows(path: Path, form: RowFormat) -> Iterator[Readable]:
    """Read the rows of an export, one at a time.

    Args:
        path: A JSON file, whose array is read in bounded memory, or a JSON Lines file.
        form: The product's form.

    Yields:
        One record for each row that holds a memory, one `Unreadable` for each that is broken.
    """
    for found in _lines(path) if _is_json_lines(path) else _elements(path):
        rows = _rows(found, form, depth=0) if isinstance(found, Row) else iter((found,))
        for row in rows:
            if isinstance(row, Unreadable):
                yield row
            else:
                yield from _read(row, form)


def moment_of(name: str, value: object) -> datetime:
    """Read a moment.

    Raises:
        InvalidInput: It is none.
    """
    found = read_moment(value)
    if found is None:
        raise InvalidInput(name, value, "is no moment", "Give ISO 8601, or seconds since 1970")
    return found


def _read(row: Row, form: RowFormat) -> Iterator[Readable]:
    try:
        fields = form.fields_of(row)
    except InvalidInput as error:
        yield Unreadable(row.place, error.field, str(error), _shown(row.value))
        return
    if fields is not None:
        yield ImportedRecord(fields, row.place)


def _is_json_lines(path: Path) -> bool:
    """Whether several lines hold an object each; a single one is read as JSON all the same."""
    if path.suffix.lower() in _LINES_SUFFIXES:
        return True
    written = (line for _, line in numbered_lines(path) if line is None or line.strip())
    first, second = next(written, None), next(written, None)
    return first is not None and second is not None and isinstance(_parsed(first), dict)


def _lines(path: Path) -> Iterator[Row | Unreadable]:
    for number, line in numbered_lines(path):
        place = f"{path.name}:{number}"
        if line is None:
            yield Unreadable(place, "line", too_long("line"))
        elif line.strip():
            value = _parsed(line)
            if isinstance(value, dict):
                yield Row(value, place)
            else:
                shown = line[:500].decode("utf-8", errors="replace").strip()
                yield Unreadable(place, "line", "not a JSON object. Mend this line.", shown)


def _elements(path: Path) -> Iterator[Row | Unreadable]:
    for name, stream in open_exports(path):
        for position, element in stream_elements(stream, name):
            place = f"{name}: element {position}"
            if isinstance(element, Unreadable):
                yield element
            elif isinstance(element, dict):
                yield Row(element, place)
            else:
                yield _no_object(place, element)


def _parsed(line: bytes) -> object:
    try:
        return json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def _rows(found: Row, form: RowFormat, *, depth: int) -> Iterator[Row | Unreadable]:
    """Give the object itself where it is a row, else those in its lists."""
    if form.is_row(found.value):
        yield found
        return
    held = {name: value for name in form.lists if isinstance(value := found.value.get(name), list)}
    if not held or depth == _DEEPEST:
        problem = f"no {form.expected} here, nor a list of such under {', '.join(form.lists)}."
        yield Unreadable(found.place, "row", problem, _shown(found.value))
        return
    around = {**found.around, **{k: v for k, v in found.value.items() if k not in held}}
    for name, elements in held.items():
        for position, element in enumerate(elements):
            place = f"{found.place}, {name} {position}"
            if isinstance(element, dict):
                yield from _rows(Row(element, place, around), form, depth=depth + 1)
            else:
                yield _no_object(place, element)


def _no_object(place: str, found: object) -> Unreadable:
    return Unreadable(place, "row", "not an object.", str(found)[:500])


def _shown(value: Mapping[str, object]) -> str:
    return str(value)[:500]
