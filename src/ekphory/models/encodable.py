"""Text that tokenizers can take."""

from __future__ import annotations


def encodable(text: str) -> str:
    """Replace lone surrogates, which have no UTF-8, by as many question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
