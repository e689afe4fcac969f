"""Whose a memory is: its org, project, agent and user, matched exactly."""

from __future__ import annotations

from collections.abc import Iterable

from ekphory.filters.tree import And, Comparison, Field, Filter, IsNull
from ekphory.moments import now_utc
from ekphory.scope import Scope
from ekphory.types import MemoryRecord

OWNER_FIELDS = ("org", "project", "agent", "user")


def owner_of(record: MemoryRecord) -> tuple[str | None, ...]:
    """Give the record's org, project, agent and user."""
    return tuple(getattr(record, name) for name in OWNER_FIELDS)


def owned_like(owner: MemoryRecord | Scope) -> Filter:
    """Give the condition for memories of exactly the same owner and session.

    A field that is None must be missing, whereas the predicate of a scope leaves it open.
    """
    return And((owned_in_any_session(owner), _same(owner, "session")))


def owned_in_any_session(owner: MemoryRecord | Scope) -> Filter:
    """Give the condition for memories of exactly the same owner, whatever their session."""
    return And(tuple(_same(owner, name) for name in OWNER_FIELDS))


def owner_name(owner: Iterable[str | None]) -> str:
    """Give an owner as one line for people."""
    named = zip(OWNER_FIELDS, owner, strict=True)
    return " ".join(f"{name}={value}" for name, value in named if value)


def orphaned_owners(records: Iterable[MemoryRecord]) -> tuple[str, ...]:
    """Name the owners that are left with nothing but history and expired memories."""
    now = now_utc()
    owners: set[str] = set()
    alive: set[str] = set()
    for record in records:
        name = owner_name(owner_of(record))
        owners.add(name)
        if record.superseded_by is None and (not record.expires_at or record.expires_at > now):
            alive.add(name)
    return tuple(sorted(owners - alive))


def _same(owner: MemoryRecord | Scope, name: str) -> Filter:
    field, value = Field(name), getattr(owner, name)
    return IsNull(field) if value is None else Comparison(field, "eq", value)
