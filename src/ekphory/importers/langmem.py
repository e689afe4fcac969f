"""Import of LangMem's memories: items of a LangGraph store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ekphory.errors import InvalidInput
from ekphory.importers.foreign_metadata import to_scalars
from ekphory.importers.record import Readable
from ekphory.importers.rows import Row, RowFormat, read_rows

_LISTS = ("items", "results")
_CONTENT = "content"


def read_langmem(path: Path) -> Iterator[Readable]:
    """Read the items of a LangGraph store, as `item.dict()` or a dump of its table gives them.

    The text is that of LangMem's `content`; a memory of a schema of one's own, and any other
    value, is written out, a line for each field, and its fields are metadata too.

    Args:
        path: A JSON array of items, `{"items": […]}`, or one item a line.

    Returns:
        One record for each item, or one `Unreadable` for each that is broken.
    """
    return read_rows(path, _FORM)


def _fields(row: Row) -> dict[str, object]:
    value = row.value.get("value")
    if not isinstance(value, dict):
        raise InvalidInput("value", value, "is no object", "Give the item's value")
    namespace = _namespace(row)
    text, parts = _text_of(value)
    beside = {
        "namespace": ".".join(namespace),
        "key": row.text("key"),
        "kind": value.get("kind"),
        "updated_at": row.value.get("updated_at"),
    }
    kept = {name: part for name, part in (parts | beside).items() if part is not None}
    return {
        "id": "/".join(map(_escaped, [*namespace, row.text("key")])),
        "text": text,
        "at": row.moment("created_at"),
        "source": "langmem",
        "metadata": to_scalars(kept),
    }


def _namespace(row: Row) -> list[str]:
    """Give the labels: a list in an item, one text with dots in a table."""
    found = row.value.get("namespace", row.value.get("prefix"))
    labels = found.split(".") if isinstance(found, str) else found
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise InvalidInput("namespace", found, "is no list of labels", 'Give ["memories", "mara"]')
    return labels


def _escaped(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F")


def _text_of(value: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Give what a value says, and which of its parts are worth keeping beside."""
    beside = {name: part for name, part in value.items() if name not in (_CONTENT, "kind")}
    content = value.get(_CONTENT, beside)
    if isinstance(content, str):
        return content, beside
    if not isinstance(content, dict):
        return json.dumps(content, ensure_ascii=False), beside
    inner = {name: part for name, part in content.items() if name != _CONTENT}
    text = content.get(_CONTENT)
    if isinstance(text, str):
        return text, beside | inner
    lines = (f"{name}: {_written(part)}" for name, part in content.items() if part is not None)
    return "\n".join(lines), beside | inner


def _written(part: object) -> str:
    return part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)


def _is_item(value: Mapping[str, object]) -> bool:
    return "value" in value and "key" in value


_FORM = RowFormat(_LISTS, _is_item, "key and value", _fields)
