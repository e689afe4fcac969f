"""Import from Zep: messages of threads or sessions, and facts and episodes of graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ekphory.importers.foreign_metadata import to_scalars
from ekphory.importers.record import Readable
from ekphory.importers.rows import Row, RowFormat, read_rows

_LISTS = (
    *("threads", "sessions", "messages"),
    *("edges", "facts", "relevant_facts", "episodes"),
)
_SESSION = ("thread_id", "session_id", "thread_uuid")
_USER = ("user_id",)
_IDS = ("uuid", "uuid_")
_READ = {
    *(*_IDS, *_SESSION, *_USER, "content", "fact", "role", "role_type", "name", "created_at"),
    *("reference_time", "valid_at", "metadata", "attributes"),
}
_NOT_KEPT = {"processed", "token_count", "score", "relevance", "content_policy"}


def read_zep(path: Path) -> Iterator[Readable]:
    """Read what Zep's API gives: messages, edges with their facts, and episodes.

    A message keeps its thread as session. A fact is a semantic memory of the moment from which it
    holds; until when is `invalid_at` in its metadata. Nodes and communities are left out: what
    they say stands in the episodes. So are messages without a word.

    Args:
        path: JSON, as the API or its SDKs give it, in lists of any of the usual names, or one
            message, edge or episode a line.

    Returns:
        One record for each, or one `Unreadable` for each that is broken.
    """
    return read_rows(path, _FORM)


def _fields(row: Row) -> dict[str, object] | None:
    if "fact" in row.value:
        return _origin(row) | {
            "text": row.text("fact"),
            "at": row.moment("valid_at", "created_at"),
            "type": "semantic",
            "metadata": _metadata(row, relation=row.value.get("name")),
        }
    content = row.value.get("content")
    if content is None or (isinstance(content, str) and not content.strip()):
        return None
    role, producer = _speaker(row)
    return _origin(row) | {
        "text": row.text("content"),
        "at": row.moment("reference_time", "created_at"),
        "role": role,
        "producer": producer,
        "session": row.name(*_SESSION),
        "metadata": _metadata(row),
    }


def _origin(row: Row) -> dict[str, object]:
    identity = next((row.value[name] for name in _IDS if row.value.get(name)), None)
    return {"id": identity, "user": row.name(*_USER), "source": "zep"}


def _speaker(row: Row) -> tuple[str | None, str | None]:
    """Give role and name: newer exports write `role` and `name`, older `role_type` and `role`."""
    written = {name: row.value.get(name) for name in ("role", "role_type", "name")}
    role, older, name = (value if isinstance(value, str) else None for value in written.values())
    return older or role, name or role


def _metadata(row: Row, *, relation: object = None) -> Mapping[str, object]:
    unread = {name: value for name, value in row.value.items() if name not in _READ | _NOT_KEPT}
    beside = unread | {"relation": relation}
    nested = [row.value.get(name) for name in ("metadata", "attributes")]
    own = {key: value for part in nested if isinstance(part, dict) for key, value in part.items()}
    return to_scalars({name: value for name, value in (beside | own).items() if value is not None})


def _is_row(value: Mapping[str, object]) -> bool:
    return "fact" in value or "content" in value


_FORM = RowFormat(_LISTS, _is_row, "content or fact", _fields)
