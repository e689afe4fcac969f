"""Which files a version of a Lance table needs, read from its manifest."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ekphory.errors import StoreError

NEWEST_FIRST = 2**64 - 1
"""Lance names a manifest after this less its version, so that the newest comes first."""
_FRAGMENT = 2
"""Number of the field that holds a fragment: its number in 1, its files in 2, their paths in 1."""
_FIXED = {1: 8, 5: 4}
"""Length of values of fixed length, by their kind."""
_NUMBERED_UPWARD = 2**63
_MANIFEST = re.compile(r"(\d+)\.manifest")
_DELETIONS = re.compile(r"\d+-\d+-(\d+)\.(?:arrow|bin)")


def manifest_of(table: Path, version: int) -> Path:
    """Return the path of a version's manifest."""
    folder = table / "_versions"
    named = folder / f"{NEWEST_FIRST - version:020}.manifest"
    return named if named.is_file() else folder / f"{version}.manifest"


def manifests_in(folder: Path) -> dict[int, Path]:
    """Return the manifests in a table's folder of versions, by version."""
    found: dict[int, Path] = {}
    for path in folder.glob("*.manifest"):
        named = _MANIFEST.fullmatch(path.name)
        if named is not None:
            number = int(named[1])
            found[NEWEST_FIRST - number if number >= _NUMBERED_UPWARD else number] = path
    return found


def names_deletions(table: Path, manifest: bytes) -> list[str]:
    """Return the names of the lists of deleted rows that a manifest names, in order.

    A file with another name is none: a writer that was killed leaves what it had begun.
    """
    folder = table / "_deletions"
    names = sorted(os.listdir(folder)) if folder.is_dir() else []  # noqa: PTH208  sooner
    lists = [name for name in names if _DELETIONS.fullmatch(name)]
    return [name for name in lists if _deletions_are_named(name, manifest)]


def needed_files(table: Path, manifest: bytes) -> Iterator[Path]:
    """Yield the files that a manifest names, itself left out.

    Lance gives every file a random name, which stands in the manifest of each state that needs
    it: that of an index as sixteen bytes, that of deletions as a number, those of others as text.
    """
    for path in sorted(path for path in table.rglob("*") if path.is_file()):
        folder, *rest = path.relative_to(table).parts
        if folder == "_indices":
            named = _index_is_named(rest[0], manifest)
        elif folder == "_deletions":
            named = _deletions_are_named(path.name, manifest)
        else:
            named = path.name.encode() in manifest
        if named:
            yield path


def data_files(manifest: bytes) -> dict[int, str]:
    """Return the name of the data file of each fragment, by the fragment's number.

    Raises:
        StoreError: It is damaged.
    """
    try:
        start = int.from_bytes(manifest[-16:-8], "little")
        length = int.from_bytes(manifest[start : start + 4], "little")
        whole = manifest[start + 4 : start + 4 + length]
        fragments = [dict(_fields(part)) for number, part in _fields(whole) if number == _FRAGMENT]
        return {int(each.get(1, 0)): dict(_fields(each[2]))[1].decode() for each in fragments}
    except (IndexError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise StoreError(
            f"a manifest of the store is damaged ({error}). Restore a backup with "
            "`ekphory restore`."
        ) from error


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a message of Protocol Buffers: number and value, a message as bytes."""
    place = 0
    while place < len(message):
        tag, place = _number(message, place)
        kind = tag & 7
        value: int | bytes
        if kind == 0:
            value, place = _number(message, place)
        else:
            length, place = _number(message, place) if kind == 2 else (_FIXED[kind], place)
            value = message[place : place + length]
            place += length
        yield tag >> 3, value


def _number(message: bytes, place: int) -> tuple[int, int]:
    """Read a number as Protocol Buffers write it; return it and the place after it."""
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def _deletions_are_named(name: str, manifest: bytes) -> bool:
    number = _DELETIONS.fullmatch(name)
    return number is None or _varint(int(number[1])) in manifest


def _index_is_named(folder: str, manifest: bytes) -> bool:
    try:
        return uuid.UUID(folder).bytes in manifest
    except ValueError:
        # No name that Lance gives today: rather too many files than too few.
        return True


def _varint(number: int) -> bytes:
    """Return a number as Protocol Buffers write it: seven bits a byte, the lowest first."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])
