"""Writing a file or folder aside, and giving it its name so that this outlives a power loss."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def write_aside(place: Path) -> Iterator[Path]:
    """Yield a name beside a place; what is written there takes the place, or leaves no trace."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{place.name}.{secrets.token_hex(8)}.part")
    try:
        yield part
        atomic_rename(part, place)
    finally:
        if part.is_dir():
            shutil.rmtree(part)
        else:
            part.unlink(missing_ok=True)


def atomic_rename(part: Path, place: Path) -> None:
    """Rename what is written to its place; a file or an empty folder there makes way."""
    if place.is_dir():
        place.rmdir()
    part.replace(place)
    # Windows opens no folder, and needs not.
    with suppress(OSError):
        _sync(place.parent)


def sync_file(stream: IO[Any]) -> None:
    """Bring what was written to the disk."""
    stream.flush()
    os.fsync(stream.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
