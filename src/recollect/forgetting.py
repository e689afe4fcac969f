"""Forgetting: hidden at once, or wiped from the disk as well."""

from __future__ import annotations

from recollect.engine import Engine
from recollect.filters.tree import And, Comparison, Field, Filter, In
from recollect.reading import get
from recollect.scope import Scope


def by_id(engine: Engine, scope: Scope, memory_id: str) -> Filter:
    """Give the condition for one memory; checks that it is there.

    Raises:
        MemoryNotFound: There is none with that id in the scope.
    """
    get(engine, scope, memory_id)
    return Comparison(Field("id"), "eq", memory_id)


def hide(engine: Engine, scope: Scope, which: Filter) -> int:
    """Delete the matching memories with their history; returns how many memories there were."""

    def write() -> int:
        engine.store.version()
        matching = And((scope.predicate(), which))
        records = engine.store.select(matching, order="written")
        current = [record.id for record in records if record.superseded_by is None]
        keys = set(engine.store.keys(matching).tolist())
        if current:
            # The versions of one memory all name it, however often it was updated.
            names = tuple(current)
            history = In(Field("superseded_by"), names)
            keys |= set(engine.store.keys(And((scope.predicate(), history))).tolist())
        engine.store.delete(sorted(keys))
        return len(records)

    return engine.writer.submit(write).result()


def purge(engine: Engine, scope: Scope, which: Filter) -> int:
    """Delete as `hide` does, then rewrite the data files without the deleted memories."""
    gone = hide(engine, scope, which)
    engine.writer.submit(engine.store.purge).result()
    return gone
