"""Changing a memory: a new version takes its place and its id, the earlier one becomes history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ekphory.engine import Engine
from ekphory.errors import InvalidInput
from ekphory.filters.tree import And, Comparison, Field
from ekphory.ingest import prepare, stored
from ekphory.moments import now_utc
from ekphory.reading import get
from ekphory.records import draft
from ekphory.scope import SCOPE_FIELDS, Scope
from ekphory.store.owner import owned_like
from ekphory.store.store import CURRENT, first_key
from ekphory.types import MemoryRecord

_KEPT = (
    *SCOPE_FIELDS,
    *"id text at expires_at pool type importance predicted producer produced_for role".split(),
    *"sequence parent_id path heading lines source metadata".split(),
)


def update(
    engine: Engine, scope: Scope, memory_id: str, changes: Mapping[str, Any]
) -> MemoryRecord:
    """Write a new version with some fields changed, in one commit with refiling the old one."""
    if not changes:
        raise InvalidInput("changes", changes, "nothing to change", "Give at least one field")
    while True:
        before = get(engine, scope, memory_id)
        if before.superseded_by is not None:
            raise InvalidInput(
                "id", memory_id, "is an earlier version", f"Update {before.superseded_by!r} instead"
            )
        after = _replaced(engine, before, changes)
        if after is not None:
            return after
        # Somebody else changed it in between: change what they made of it.


def _replaced(
    engine: Engine, before: MemoryRecord, changes: Mapping[str, Any]
) -> MemoryRecord | None:
    """Replace exactly `before`; None when that is not what is stored any more."""
    # Checked and embedded before the lock is taken, written within it.
    entry = draft(_changed(before, changes), scope=Scope(), now=now_utc())
    if entry.is_only_recalled:
        raise InvalidInput(
            "text",
            changes.get("text"),
            "holds nothing but recalled memories",
            "Give the new text itself",
        )
    prepared = prepare(engine, [entry])[0]
    named = And((owned_like(before), CURRENT, Comparison(Field("id"), "eq", before.id)))

    def write() -> MemoryRecord | None:
        version = engine.store.version()
        stored_now = engine.store.fetch(engine.store.keys(named).tolist())
        key = next((key for key, record in stored_now.items() if record == before), None)
        if key is None:
            return None
        version_id = _free_version_id(engine, before)
        # Hidden together with its successor, when that expires.
        history = replace(
            before,
            id=version_id,
            superseded_by=before.id,
            expires_at=prepared.draft.record.expires_at,
        )
        successor = stored(prepared, first_key(after=version))
        record = replace(successor.record, supersedes=version_id)
        engine.store.supersede(key, history, replace(successor, record=record, fingerprint=None))
        return record

    return engine.writer.submit(write).result()


def _changed(before: MemoryRecord, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Give the fields of the new version; what was predicted of another text is left out."""
    outdated = before.predicted if "text" in changes else frozenset()
    kept = {name: getattr(before, name) for name in _KEPT if name not in outdated}
    return kept | {"predicted": before.predicted - changes.keys()} | dict(changes)


def _free_version_id(engine: Engine, current: MemoryRecord) -> str:
    """`id~1`, `id~2`, …: the first that no memory of the same owner has."""
    number = 1 if current.supersedes is None else _number(current.supersedes) + 1
    while True:
        name = f"{current.id}~{number}"
        named = Comparison(Field("id"), "eq", name)
        if engine.store.count(And((owned_like(current), named))) == 0:
            return name
        number += 1


def _number(version_id: str) -> int:
    tail = version_id.rpartition("~")[2]
    return int(tail) if tail.isdigit() else 0
