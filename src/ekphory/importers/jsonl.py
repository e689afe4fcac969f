"""Import of JSON Lines in our own field names: one record per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ekphory.importers.record import MAX_UNIT_BYTES, ImportedRecord, Readable, Unreadable
from ekphory.importers.source import numbered_lines

_SET_BY_THE_STORE = ("created_at", "supersedes", "superseded_by")
"""Fields that a listing shows and that the store sets itself when a record is written."""


def read_jsonl(path: Path) -> Iterator[Readable]:
    """Read a JSON Lines file whose objects use the field names of `MemoryRecord`.

    A broken line is reported with its number and does not end the import. What the store sets
    itself, such as `created_at`, is passed over, so that a listing can be imported again.

    Args:
        path: The file, UTF-8.

    Yields:
        One record or one `Unreadable` for every line that is not blank.
    """
    for number, line in numbered_lines(path):
        place = f"{path.name}:{number}"
        if line is None:
            yield Unreadable(place, "line", too_long("line"))
        elif line.strip():
            yield _read_line(line, place)


def too_long(unit: str) -> str:
    """Say that a line or paragraph is longer than the importers read."""
    limit = MAX_UNIT_BYTES // 2**20
    return f"the {unit} is longer than {limit} MB. Split it into several {unit}s."


def _read_line(line: bytes, place: str) -> Readable:
    content = line[:500].decode("utf-8", errors="replace").strip()
    try:
        parsed = json.loads(line.decode("utf-8").strip())
    except UnicodeDecodeError as error:
        message = f"byte {error.start + 1} of the line is not UTF-8. Save the file as UTF-8."
        return Unreadable(place, "line", message, content)
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg} (column {error.colno}). Mend this line."
        return Unreadable(place, "line", message, content)
    except (ValueError, RecursionError) as error:
        return Unreadable(place, "line", f"not usable JSON: {error}. Mend this line.", content)
    if not isinstance(parsed, dict):
        message = f"a {type(parsed).__name__} in place of an object. Write {{...}} on each line."
        return Unreadable(place, "line", message, content)
    if parsed.get("superseded_by") is not None:
        message = "an earlier version of another memory. Import only the current one."
        return Unreadable(place, "superseded_by", message, content)
    kept = {name: value for name, value in parsed.items() if name not in _SET_BY_THE_STORE}
    return ImportedRecord(kept, place)
