"""Giving a finished file or folder its name, so that the name outlives a power loss."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def atomic_rename(part: Path, place: Path) -> None:
    """Rename what is written to its place; a file or an empty folder there makes way."""
    if place.is_dir():
        place.rmdir()
    part.replace(place)
    # Windows opens no folder, and needs not.
    with suppress(OSError):
        _sync(place.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
