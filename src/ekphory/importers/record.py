"""What every importer yields: a record that may be written, or a place that could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

MAX_UNIT_BYTES = 20 * 1024 * 1024
"""Longest line, or paragraph, that is read; a longer one is reported and passed over."""


@dataclass(frozen=True, slots=True)
class ImportedRecord:
    """One memory-to-be, as an importer found it.

    Attributes:
        fields: Field names of `MemoryRecord` and their values, ready for `Memory.add_many`.
        place: Where it was found, for people: `notes.jsonl:17`.
    """

    fields: dict[str, object]
    place: str


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


Readable: TypeAlias = ImportedRecord | Unreadable
