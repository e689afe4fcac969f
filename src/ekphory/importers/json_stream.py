"""Large JSON files read one element at a time, so that an export of gigabytes fits in memory."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator

import ijson

from ekphory.importers.record import Unreadable

_BROKEN = (ijson.JSONError, zipfile.BadZipFile, zlib.error, EOFError)
_HOLDERS = {
    *("item", "conversations", "results", "memories", "items"),
    *("threads", "sessions", "messages", "edges", "facts", "relevant_facts", "episodes"),
}
"""Parts of the path to a record: an array, and the names under which exports keep theirs."""


def stream_elements(stream: io.BufferedReader, name: str) -> Iterator[tuple[int, object]]:
    """Read the elements of a JSON array, or of the `conversations` array of an object.

    A single object counts as its own only element. Where the file breaks off or breaks, all
    elements before that point are given, then one `Unreadable`.

    Args:
        stream: The JSON text.
        name: What to call it in a report.

    Yields:
        The element's position, from 0, and the element.
    """
    position = 0
    try:
        for element in _elements(stream):
            yield position, element
            position += 1
    except _BROKEN as error:
        yield position, broken_json(name, position, error)


def top_level_keys(stream: io.BufferedReader) -> Iterator[str]:
    """Read the keys of the first record of a JSON file, as far as it can be read.

    The first record is the file's own object, or the first element of its array or of an array
    within it that an export keeps its records in, with the keys of what lies around it.
    """
    try:
        for prefix, event, value in ijson.parse(stream, use_float=True):
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


def starts_as_json(stream: io.BufferedReader) -> str:
    """Give `[` or `{` where the file opens with one, white space aside, else an empty text."""
    first = stream.peek(4096)[:4096].lstrip()[:1]
    return first.decode() if first in (b"[", b"{") else ""


def broken_json(name: str, position: int, error: Exception) -> Unreadable:
    """Report that a JSON file cannot be read from its element `position` on."""
    reason = str(error).strip().splitlines()[0]
    return Unreadable(
        place=f"{name}: element {position}",
        field="conversation",
        message=f"the JSON is broken or cut off after {position} readable elements ({reason}). "
        "Nothing behind this point was read; download the export again and re-run the import.",
    )


def _elements(stream: io.BufferedReader) -> Iterator[object]:
    if starts_as_json(stream) == "[":
        yield from ijson.items(stream, "item", use_float=True)
        return
    for whole in ijson.items(stream, "", use_float=True):
        inner = whole.get("conversations") if isinstance(whole, dict) else None
        if isinstance(inner, list):
            yield from inner
        else:
            yield whole
