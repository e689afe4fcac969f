"""Import of mem0's memories, as `get_all` gives them: open source or platform, old or new."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ekphory.errors import InvalidInput
from ekphory.importers.foreign_metadata import to_scalars
from ekphory.importers.record import Readable
from ekphory.importers.rows import Row, RowFormat, moment_of, read_rows
from ekphory.moments import now_utc

_READ = {
    *("id", "memory", "created_at", "user_id", "agent_id", "run_id", "role", "actor_id"),
    *("metadata", "expiration_date"),
}
_MADE_ANEW = {"hash", "score", "score_details", "text_lemmatized"}


def read_mem0(path: Path) -> Iterator[Readable]:
    """Read the memories of a mem0 export.

    Users, agents and runs become the scope; what else a memory has, such as `categories` and
    `updated_at`, goes into its metadata. A memory that has expired is reported and left out.

    Args:
        path: What `get_all` gave, as JSON: `{"results": […]}`, a list, or one memory a line.

    Returns:
        One record for each memory, or one `Unreadable` for each that is broken.
    """
    return read_rows(path, _FORM)


def _fields(row: Row) -> dict[str, object]:
    role = row.name("role")
    metadata = row.value.get("metadata")
    beside = {
        name: value
        for name, value in row.value.items()
        if name not in _READ | _MADE_ANEW and value is not None
    }
    return {
        "id": row.text("id"),
        "text": row.text("memory"),
        "at": row.moment("created_at"),
        "expires_at": _expiry(row),
        "user": row.name("user_id"),
        "agent": row.name("agent_id"),
        "session": row.name("run_id"),
        "producer": row.name("actor_id") or role,
        "role": role,
        "source": "mem0",
        "metadata": to_scalars(beside | (metadata if isinstance(metadata, dict) else {})),
    }


def _expiry(row: Row) -> object:
    value = row.value.get("expiration_date")
    if value is None:
        return None
    moment = moment_of("expiration_date", value)
    if moment <= now_utc():
        raise InvalidInput(
            "expiration_date", value, "has passed", "Remove it to import this memory all the same"
        )
    return moment


def _is_memory(value: Mapping[str, object]) -> bool:
    return "memory" in value


_FORM = RowFormat(("results", "memories"), _is_memory, "memory", _fields)
