"""Which files a version of a Lance table needs, read from its manifest."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

NEWEST_FIRST = 2**64 - 1
"""Lance names a manifest after this less its version, so that the newest comes first."""
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

    Raises:
        FileNotFoundError: One was removed meanwhile.
    """
    folder = table / "_deletions"
    names = sorted(os.listdir(folder)) if folder.is_dir() else []  # noqa: PTH208  sooner
    return [name for name in names if _deletions_are_named(name, manifest)]


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
