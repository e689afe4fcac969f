"""Vectors that the parent gave, for a peer that wants a function by name."""

from __future__ import annotations

import importlib
from typing import Any

VECTORS: dict[str, Any] = {}
"""Vector by text, replaced before every operation."""


def transform(texts: list[str]) -> Any:  # noqa: ANN401  numpy is not known here
    """Return texts their vectors; shape (len(texts), dimension)."""
    numpy: Any = importlib.import_module("numpy")
    return numpy.array([VECTORS[text] for text in texts], "float32")


def replace_all(vectors: dict[str, Any]) -> None:
    """Set the vectors of what comes next."""
    VECTORS.clear()
    VECTORS.update(vectors)
