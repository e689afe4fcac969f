"""Forgetting: hidden at once, or wiped from the disk as well."""

from __future__ import annotations

from ekphory.engine import Engine
from ekphory.filters.tree import And, Comparison, Field, Filter
from ekphory.reading import get_even_expired
from ekphory.scope import Scope
from ekphory.store.owner import owned_like
from ekphory.store.store import CURRENT


def hide(engine: Engine, scope: Scope, which: Filter) -> int:
    """Delete the matching current memories with their history; returns how many memories."""

    def write() -> int:
        engine.store.version()
        matching = And((scope.predicate(), CURRENT, which))
        records = engine.store.select(matching, order="written")
        keys = engine.store.keys(matching).tolist()
        for record in records:
            if record.supersedes is not None:
                versions = Comparison(Field("superseded_by"), "eq", record.id)
                keys += engine.store.keys(And((owned_like(record), versions))).tolist()
        engine.store.delete(keys)
        return len(records)

    return engine.writer.submit(write).result()


def hide_one(engine: Engine, scope: Scope, memory_id: str) -> int:
    """Delete one memory with its history, or one version of its history alone.

    Raises:
        MemoryNotFound: There is none with that id in the scope.
    """
    record = get_even_expired(engine, scope, memory_id)
    named = And((owned_like(record), Comparison(Field("id"), "eq", memory_id)))
    if record.superseded_by is None:
        return hide(engine, scope, named)

    def write() -> int:
        engine.store.version()
        keys = engine.store.keys(And((scope.predicate(), named))).tolist()
        engine.store.delete(keys)
        return len(keys)

    return engine.writer.submit(write).result()


def purge(engine: Engine) -> None:
    """Rewrite the data files without what was deleted."""
    engine.writer.submit(engine.store.purge).result()
