"""Memories in the form in which mem0 gives them back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ekphory.importers.foreign_metadata import from_scalars
from ekphory.types import Hit, MemoryRecord

Item = dict[str, Any]
"""One memory: `id`, `memory`, `hash`, `metadata`, `created_at`, `updated_at` and whose it is."""
Results = dict[str, list[Item]]
"""`{"results": […]}`"""


def item_of(record: MemoryRecord) -> Item:
    """Give a memory as `get` and `get_all` do; who is not known is left out."""
    known = {
        "user_id": record.user,
        "agent_id": record.agent,
        "run_id": record.session,
        "actor_id": _actor(record),
        "role": record.role or None,
    }
    return {
        "id": record.id,
        "memory": record.text,
        "hash": hashlib.md5(record.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": from_scalars(record.metadata) or None,
        "created_at": record.at.isoformat(),
        "updated_at": _changed_at(record).isoformat(),
        **{name: value for name, value in known.items() if value is not None},
    }


def found_item(hit: Hit) -> Item:
    """Give a memory as `search` does: its `score` is a probability."""
    return item_of(hit.memory) | {"score": hit.score}


def explained_item(hit: Hit) -> Item:
    """Give a memory as `search` does, with what its score was made from."""
    return found_item(hit) | {"score_details": dict(hit.scores)}


def added_item(record: MemoryRecord) -> Item:
    """Give a memory as `add` reports it."""
    return {
        "id": record.id,
        "memory": record.text,
        "event": "ADD",
        "actor_id": _actor(record),
        "role": record.role,
    }


def history_items(versions: Sequence[MemoryRecord]) -> list[Item]:
    """Give what became of a memory, its versions newest first, as mem0 tells it: oldest first."""
    oldest_first = versions[::-1]
    earlier: list[MemoryRecord | None] = [None, *oldest_first]
    return [
        {
            "id": version.id,
            "memory_id": versions[0].id,
            "old_memory": before.text if before else None,
            "new_memory": version.text,
            "event": "UPDATE" if before else "ADD",
            "created_at": version.at.isoformat(),
            "updated_at": _changed_at(version).isoformat(),
            "is_deleted": False,
            "actor_id": _actor(version),
            "role": version.role or None,
        }
        for before, version in zip(earlier, oldest_first, strict=False)
    ]


def _actor(record: MemoryRecord) -> str | None:
    return record.producer if record.producer not in ("", record.role) else None


def _changed_at(record: MemoryRecord) -> datetime:
    return record.at if record.supersedes is None else record.created_at
