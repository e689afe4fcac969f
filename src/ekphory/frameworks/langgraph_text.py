"""What is searched of a value that LangGraph stores: the texts in it, read from some fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langgraph.store.base import get_text_at_path

from ekphory.errors import InvalidInput
from ekphory.recalled import without_recalled
from ekphory.records import LONGEST_TEXT

WHOLE = "$"
"""The field that stands for the whole value."""


def searchable_text(value: Mapping[str, Any], fields: Sequence[str]) -> str | None:
    """Give the texts of these fields, a line each; None where there is nothing to search.

    Args:
        value: What is stored.
        fields: Paths as LangGraph writes them (`title`, `messages[*].content`), `$` for all.

    Raises:
        InvalidInput: There is more text than a memory holds.
    """
    parts = [part for field in fields for part in _texts(value, field)]
    # What UTF-8 cannot carry is kept in the value, where JSON escapes it.
    text = "\n".join(parts).replace("\0", " ").encode("utf-8", "replace").decode()
    if len(text) > LONGEST_TEXT:
        raise InvalidInput(
            "value",
            value,
            f"has {len(text):,} characters to search, more than {LONGEST_TEXT:,}",
            "Name the fields to search, index=['title'], or none, index=False",
        )
    return text if without_recalled(text).strip() else None


def _texts(value: Mapping[str, Any], field: str) -> list[str]:
    if field != WHOLE:
        return get_text_at_path(value, field)
    leaves = list(_leaves(value, ""))
    if len(leaves) == 1:
        return [text for _, text in leaves]
    return [f"{name}: {text}" for name, text in leaves]


def _leaves(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Give every text, number and truth value within, each with the names that lead to it."""
    match value:
        case Mapping():
            for key, part in value.items():
                yield from _leaves(part, f"{name}.{key}" if name else str(key))
        case list() | tuple():
            for part in value:
                yield from _leaves(part, name)
        case str() if value.strip():
            yield name, value
        case bool():
            yield name, "true" if value else "false"
        case int() | float():
            yield name, str(value)
