"""Which scopes a store holds, and which of them are left with nothing to find."""

from __future__ import annotations

from collections.abc import Iterable

from recollect.moments import now_utc
from recollect.types import MemoryRecord

OWNER_FIELDS = ("org", "project", "agent", "user")


def owner_of(record: MemoryRecord) -> tuple[str | None, ...]:
    """Give the record's org, project, agent and user."""
    return tuple(getattr(record, name) for name in OWNER_FIELDS)


def owner_name(owner: Iterable[str | None]) -> str:
    """Give an owner as one line for people."""
    named = zip(OWNER_FIELDS, owner, strict=True)
    return " ".join(f"{name}={value}" for name, value in named if value)


def orphaned_scopes(records: Iterable[MemoryRecord]) -> tuple[str, ...]:
    """Scopes that hold nothing but history and expired memories."""
    now = now_utc()
    scopes: set[str] = set()
    alive: set[str] = set()
    for record in records:
        name = owner_name(owner_of(record))
        scopes.add(name)
        if record.superseded_by is None and (not record.expires_at or record.expires_at > now):
            alive.add(name)
    return tuple(sorted(scopes - alive))
