"""One memory and its versions: read, updated, forgotten or purged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from ekphory.detect import CALLER
from ekphory.engine import Engine
from ekphory.errors import InvalidInput, MemoryNotFound
from ekphory.filters.lance_sql import matches
from ekphory.filters.tree import EVERYTHING, And, Comparison, Field, Filter, IsNull, Not, Or
from ekphory.scope import Scope, are_versions_of, owned_like
from ekphory.store.protocol import CURRENT, Order, version_key
from ekphory.types import MemoryRecord, check_count, is_storable, now_utc
from ekphory.write import WRITABLE_FIELDS, make_draft, make_ledger, match_store, prepare, to_stored

# Reading without ranking.


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list: `limit` memories after the first `offset`, in this order."""

    limit: int
    offset: int
    order: Order

    def __post_init__(self) -> None:
        check_count("limit", self.limit)
        check_count("offset", self.offset, least=0)
        if self.order not in get_args(Order):
            choices = ", ".join(get_args(Order))
            raise InvalidInput("order", self.order, "no such order", f"Choose one of {choices}")


def in_view(scope: Scope, narrower: Filter) -> Filter:
    """Return the scope's current, unexpired memories that match `narrower`."""
    return And((scope.predicate(), CURRENT, unexpired(), narrower))


def get(engine: Engine, scope: Scope, memory_id: str) -> MemoryRecord:
    """Read one memory by its id; history can be read by the ids of its versions.

    An earlier version is there as long as its memory is.
    """
    is_history = Not(CURRENT)
    record = _get_matching(engine, scope, memory_id, Or((is_history, unexpired())))
    if record.superseded_by is not None:
        its_memory = And((owned_like(record), CURRENT, _has_id(record.superseded_by), unexpired()))
        if engine.store.count(its_memory) == 0:
            raise MemoryNotFound(memory_id)
    return record


def _get_matching(engine: Engine, scope: Scope, memory_id: str, narrower: Filter) -> MemoryRecord:
    if not isinstance(memory_id, str) or not memory_id or not is_storable(memory_id):
        raise InvalidInput("id", memory_id, "an id is non-empty text", "Give the memory's id")
    engine.store.version()
    where = And((scope.predicate(), _has_id(memory_id), narrower))
    found = engine.store.select(where, order="newest")
    if not found:
        raise MemoryNotFound(memory_id)
    if len(found) > 1:
        found = _prefer_own(scope, found)
    if len(found) > 1:
        problem = f"{len(found)} narrower scopes within this one use it"
        remedy = "Bind the agent, user or session that is meant"
        raise InvalidInput("id", memory_id, problem, remedy)
    return found[0]


def list_memories(engine: Engine, scope: Scope, narrower: Filter, page: Page) -> list[MemoryRecord]:
    """Read one page of the scope's memories."""
    engine.store.version()
    return engine.store.select(
        in_view(scope, narrower), order=page.order, limit=page.limit, offset=page.offset
    )


def count(engine: Engine, scope: Scope, narrower: Filter) -> int:
    """Return how many memories there are to find."""
    engine.store.version()
    return engine.store.count(in_view(scope, narrower))


def history(engine: Engine, scope: Scope, memory_id: str) -> list[MemoryRecord]:
    """Return the memory and its earlier versions, newest first."""
    record = get(engine, scope, memory_id)
    return [record, *reversed(engine.store.select(are_versions_of(record), order="written"))]


def _has_id(memory_id: str) -> Filter:
    return Comparison(Field("id"), "eq", memory_id)


def _prefer_own(scope: Scope, found: list[MemoryRecord]) -> list[MemoryRecord]:
    """Of several with one id, prefer the current ones, and of those what the scope itself owns."""
    current = [record for record in found if record.superseded_by is None] or found
    own = [record for record in current if matches(scope.own_predicate(), record)]
    return own or current


def unexpired() -> Filter:
    """Return the condition for memories that have not expired until now."""
    expiry = Field("expires_at")
    return Or((IsNull(expiry), Comparison(expiry, "gt", now_utc())))


# Changing: a new version takes the place and the id, the earlier one becomes history.


def update(
    engine: Engine, scope: Scope, memory_id: str, changes: Mapping[str, Any]
) -> MemoryRecord:
    """Write a new version with some fields changed, in one commit with refiling the old one."""
    if not changes:
        raise InvalidInput("changes", changes, "nothing to change", "Give at least one field")
    return change(engine, scope, memory_id, lambda _: changes)


def change(
    engine: Engine,
    scope: Scope,
    memory_id: str,
    find_changes: Callable[[MemoryRecord], Mapping[str, Any]],
) -> MemoryRecord:
    """Write a new version with fields that are found from exactly the one that it replaces."""
    while True:
        before = get(engine, scope, memory_id)
        if before.superseded_by is not None:
            problem = "is an earlier version"
            raise InvalidInput("id", memory_id, problem, f"Update {before.superseded_by!r} instead")
        after = _replace(engine, before, find_changes(before))
        if after is not None:
            return after
        # Somebody else changed it in between: change what they made of it.


def _replace(
    engine: Engine, before: MemoryRecord, changes: Mapping[str, Any]
) -> MemoryRecord | None:
    """Replace exactly `before`; None when that is not what is stored any more."""
    # Checked and embedded before the lock is taken, written within it.
    entry = make_draft(_change(before, changes), scope=Scope(), now=now_utc())
    if entry.is_only_recalled:
        problem = "holds nothing but recalled memories"
        raise InvalidInput("text", changes.get("text"), problem, "Give the new text itself")
    prepared = prepare(engine.embedder, [entry])[0]
    named = And((owned_like(before), CURRENT, _has_id(before.id)))

    def write() -> MemoryRecord | None:
        version = engine.store.version()
        stored_now = engine.store.fetch(engine.store.keys(named).tolist())
        key = next((key for key, record in stored_now.items() if record == before), None)
        if key is None:
            return None
        version_id = _free_version_id(engine, before)
        # Hidden together with its successor, when that expires.
        until = prepared.draft.record.expires_at
        history = replace(before, id=version_id, superseded_by=before.id, expires_at=until)
        (matching,) = match_store(engine, [prepared])
        make_ledger(engine)
        noted = engine.ledger.read().version
        successor = to_stored(matching, version_key(after=version, noted=noted))
        record = replace(successor.record, supersedes=version_id)
        _carry_over(engine, key, successor.key, all_of_them=before.text == record.text)
        engine.store.supersede(key, history, replace(successor, record=record, fingerprint=None))
        engine.detector.wake()
        return record

    return engine.writer.submit(write).result()


def _carry_over(engine: Engine, key: int, successor: int, *, all_of_them: bool) -> None:
    """Let the decisions on a memory hold for its new version, which has another row.

    Those of a model were on its text, so a new text is judged anew; with the same text, what was
    taken back stays so. They are noted before the version is written: one that names a row which
    never came acts on nothing.
    """
    entries = engine.ledger.read().entries.values()
    moved = [
        each.moved(lambda old: successor if old == key else old)
        for each in entries
        if key in each.keys
        and (
            all_of_them or (each.revision.decided_by == CALLER and each.revision.state != "undone")
        )
    ]
    if moved:
        engine.ledger.append(moved)


def _change(before: MemoryRecord, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the new version; what was predicted of another text is left out.

    A new text is of now, unless it is said of when it is.
    """
    outdated: set[str] = {*before.predicted, "at"} if "text" in changes else set()
    kept = {name: getattr(before, name) for name in WRITABLE_FIELDS if name not in outdated}
    return kept | {"predicted": before.predicted - changes.keys()} | dict(changes)


def _free_version_id(engine: Engine, current: MemoryRecord) -> str:
    """Return the first of `id~1`, `id~2`, … that no memory of the same owner has."""
    tail = (current.supersedes or "").rpartition("~")[2]
    number = int(tail) + 1 if tail.isdigit() else 1
    while True:
        name = f"{current.id}~{number}"
        if engine.store.count(And((owned_like(current), _has_id(name)))) == 0:
            return name
        number += 1


# Forgetting.


def hide(engine: Engine, scope: Scope, which: Filter) -> int:
    """Delete the matching current memories with their history; return how many memories."""

    def write() -> int:
        records, keys = find_whole(engine, And((scope.predicate(), CURRENT, which)))
        engine.store.delete(keys)
        return len(records)

    return engine.writer.submit(write).result()


def find_whole(engine: Engine, which: Filter) -> tuple[list[MemoryRecord], list[int]]:
    """Return matching memories, and the keys of these and of all their earlier versions."""
    engine.store.version()
    records = engine.store.select(which, order="written")
    keys = set(engine.store.keys(which).tolist())
    for record in records:
        if record.supersedes is not None:
            keys |= set(engine.store.keys(are_versions_of(record)).tolist())
    return records, sorted(keys)


def hide_one(engine: Engine, scope: Scope, memory_id: str) -> int:
    """Delete one memory with its history, or one version of its history alone.

    Raises:
        MemoryNotFound: There is none with that id in the scope.
    """
    # Also where it is hidden because it has expired.
    record = _get_matching(engine, scope, memory_id, EVERYTHING)
    named = And((owned_like(record), _has_id(memory_id)))
    if record.superseded_by is None:
        return hide(engine, scope, named)

    def write() -> int:
        engine.store.version()
        keys = engine.store.keys(And((scope.predicate(), named))).tolist()
        engine.store.delete(keys)
        return len(keys)

    return engine.writer.submit(write).result()


def purge(engine: Engine) -> None:
    """Rewrite the data files without what was deleted, the ledger's too."""

    def write() -> None:
        engine.store.purge()
        living = engine.store.keys(CURRENT)
        engine.snapshots.drop_all_but(living)
        keys = set(living.tolist())
        engine.ledger.purge(lambda entry: keys.issuperset(entry.keys))

    engine.writer.submit(write).result()
