"""What a name means that may be a directory or a hub id."""

from __future__ import annotations

import re
from pathlib import Path

from ekphory.errors import InvalidInput

ONNX_FOLDER = "onnx"
"""Where a directory with float weights keeps the ONNX model that was made from them."""
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


def existing_directory(name: str, *, field: str) -> Path | None:
    """Give the directory, or None where the name is a hub id.

    Args:
        name: What the caller gave.
        field: What the caller knows it by.

    Raises:
        InvalidInput: It is neither.
    """
    directory = Path(name).expanduser()
    if name and directory.is_dir():
        return directory
    looks_like_path = name.startswith((".", "~")) or directory.is_absolute() or directory.exists()
    if looks_like_path or not _HUB_ID.fullmatch(name):
        raise InvalidInput(
            field,
            name,
            "no such model directory",
            "Give a directory, a hub id like 'owner/model', or 'bundled'; the URL of a service "
            "begins with http:// or https://.",
        )
    return None
