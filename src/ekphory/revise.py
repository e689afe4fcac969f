"""What holds now, and what held before: superseding, conflicts, timelines and profiles."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import get_args

import numpy as np

from ekphory.detect import CALLER, exact_scope, revision_id
from ekphory.engine import Engine
from ekphory.errors import InvalidInput, ScopeError
from ekphory.filters.tree import And, Comparison, Field, Filter, Or
from ekphory.history import get, unexpired
from ekphory.retrieval.revisions import FOREVER, RevisionLinks
from ekphory.scope import SCOPE_FIELDS, Scope, get_owner
from ekphory.store.ledger import LedgerEntry
from ekphory.store.protocol import CURRENT, IntArray
from ekphory.types import (
    EPOCH,
    SUPERSEDING,
    MemoryRecord,
    MemoryType,
    Revision,
    RevisionKind,
    now_utc,
    to_microseconds,
    to_utc,
)
from ekphory.write import make_ledger

_SCANNED = 64


@dataclass(frozen=True, slots=True)
class State:
    """One state of a topic.

    Attributes:
        memory: What tells of it.
        since: From when on it held.
        until: When something else took its place; None where it holds still.
        revision: Id of the decision that ended it; None where it holds still.
    """

    memory: MemoryRecord
    since: datetime
    until: datetime | None
    revision: str | None


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """One lasting fact or preference that holds.

    Attributes:
        text: As it was told last.
        type: Kind of memory.
        evidence: Ids of the memories that tell it, the newest first.
        probability: That it still holds: 1 less what an open conflict says against it.
        since: When it was told first.
    """

    text: str
    type: MemoryType
    evidence: tuple[str, ...]
    probability: float
    since: datetime


# Decisions.


def supersede(
    engine: Engine,
    scope: Scope,
    old: str,
    *,
    by: str,
    kind: RevisionKind,
    at: str | datetime | None,
) -> Revision:
    """Note that one memory supersedes another, whoever said either."""
    if kind not in get_args(RevisionKind):
        choices = ", ".join(get_args(RevisionKind))
        raise InvalidInput("kind", kind, "no such kind of revision", f"Choose one of {choices}")
    older, newer = get(engine, scope, old), get(engine, scope, by)
    if older.id == newer.id:
        raise InvalidInput("by", by, "is the same memory", "Name the memory that supersedes it")
    _check_scopes(older, newer)
    since = newer.at if at is None else to_utc(at, field="at")

    def write() -> Revision:
        engine.store.version()
        keys = _key_of(engine, older), _key_of(engine, newer)
        revision = Revision(
            id=revision_id(get_owner(older), keys),
            batch=uuid.uuid4().hex[:16],
            older=older.id,
            newer=newer.id,
            kind=kind,
            probability=1.0,
            decided_by=CALLER,
            decided_at=now_utc(),
            state="active",
        )
        entry = LedgerEntry(
            revision=revision,
            owner=get_owner(older),
            pool=older.pool,
            older_key=keys[0],
            newer_key=keys[1],
            since=since,
        )
        make_ledger(engine)
        engine.ledger.append([entry])
        return revision

    return engine.writer.submit(write).result()


def _check_scopes(older: MemoryRecord, newer: MemoryRecord) -> None:
    for name in (*SCOPE_FIELDS[:-1], "pool"):
        first, second = getattr(older, name), getattr(newer, name)
        if first != second:
            problem = f"the older memory has {name}={first!r}"
            remedy = "A revision acts within one scope and pool; write the newer memory there"
            raise ScopeError(name, second, problem, remedy)


def _key_of(engine: Engine, record: MemoryRecord) -> int:
    named = And((exact_scope(record), CURRENT, Comparison(Field("id"), "eq", record.id)))
    keys = engine.store.keys(named).tolist()
    if not keys:
        raise InvalidInput("id", record.id, "was changed or forgotten meanwhile", "Try again")
    return int(keys[-1])


def unsupersede(engine: Engine, scope: Scope, *, revision: str | None, batch: str | None) -> int:
    """Take back one decision, or all of a batch; return how many that were."""
    if (revision is None) == (batch is None):
        raise InvalidInput(
            "revision", revision, "give a revision or a batch, not both", "Name what to take back"
        )

    def write() -> int:
        wanted = [
            each
            for each in visible_entries(engine, scope)
            if revision in (None, each.revision.id) and batch in (None, each.revision.batch)
        ]
        if not wanted:
            field, value = ("revision", revision) if batch is None else ("batch", batch)
            raise InvalidInput(field, value, "there is none in this scope", "See `conflicts`")
        changed = [
            replace(
                each,
                revision=replace(
                    each.revision, state="undone", decided_by=CALLER, decided_at=now_utc()
                ),
            )
            for each in wanted
            if each.revision.state != "undone"
        ]
        if changed:
            engine.ledger.append(changed)
        return len(changed)

    return engine.writer.submit(write).result()


def conflicts(engine: Engine, scope: Scope, *, scan: bool, limit: int) -> tuple[Revision, ...]:
    """Return the decisions that wait for somebody to look, the newest first."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidInput("limit", limit, "is out of range", "Give at least 1")
    if scan:
        scan_scope(engine, scope)
    found = [each.revision for each in visible_entries(engine, scope)]
    waiting = [each for each in reversed(found) if each.state == "conflict"]
    return tuple(islice(waiting, limit))


def scan_scope(
    engine: Engine, scope: Scope, on_progress: Callable[[int, int], None] | None = None
) -> int:
    """Compare all memories of a scope with each other; return how many decisions that gave."""
    tell = on_progress or (lambda _done, _total: None)
    engine.writer.submit(lambda: make_ledger(engine)).result()
    keys = engine.store.keys(And((scope.own_predicate(), CURRENT))).tolist()
    batch, decided = uuid.uuid4().hex[:16], 0
    for start in range(0, len(keys), _SCANNED):
        entries = engine.detector.compare(keys[start : start + _SCANNED], batch=batch)
        decided += engine.detector.note(entries)
        tell(min(start + _SCANNED, len(keys)), len(keys))
    return decided


def visible_entries(engine: Engine, scope: Scope) -> list[LedgerEntry]:
    """Return the ledger's entries both of whose memories the scope sees, the oldest first."""
    snapshot = engine.snapshots.of(scope.predicate())
    keys = snapshot.columns.key
    entries = list(engine.ledger.read().entries.values())
    wanted = np.array([(each.older_key, each.newer_key) for each in entries], np.int64)
    seen = np.isin(wanted.reshape(-1, 2), keys)
    return [each for each, (older, newer) in zip(entries, seen, strict=True) if older and newer]


# Timelines.


def timeline(engine: Engine, scope: Scope, rows: Sequence[str], *, k: int) -> tuple[State, ...]:
    """Return the states of the topic of the first of some memories that has several.

    Args:
        engine: The store.
        scope: Whose memories they are.
        rows: Ids of what a search for the topic found, best first.
        k: Most states, the newest ones.
    """
    snapshot = engine.snapshots.of(scope.predicate())
    links = engine.links.of(snapshot)
    if not rows:
        return ()
    keys = engine.store.keys(And((scope.predicate(), CURRENT, _has_id(rows))))
    found = engine.store.fetch(keys.tolist())
    key_of = {record.id: key for key, record in found.items()}
    ordered = [key_of[each] for each in rows if each in key_of]
    places = np.searchsorted(snapshot.columns.key, np.array(ordered, np.int64)).tolist()
    groups = links.joined_to(places)
    group = groups[0] if groups else places[:1]
    return tuple(_states(engine, snapshot.columns.key, links, group)[-k:])


def _has_id(ids: Iterable[str]) -> Filter:
    return Or(tuple(Comparison(Field("id"), "eq", each) for each in ids))


def _states(
    engine: Engine, keys: IntArray, links: RevisionLinks, group: Sequence[int]
) -> list[State]:
    records = engine.store.fetch([int(keys[row]) for row in group])
    entries = engine.ledger.read().entries.values()
    ended_by = {
        (each.older_key, each.newer_key): each.revision.id
        for each in entries
        if each.revision.state == "active"
    }
    states = []
    for row in group:
        record = records[int(keys[row])]
        until, revision = None, None
        after = [
            link for link in links.of_rows([row]) if link.older == row and link.kind in SUPERSEDING
        ]
        own = [
            link for link in links.of_rows([row]) if link.newer == row and link.kind == "excepts"
        ]
        if after:
            first = min(after, key=lambda link: link.since)
            until = EPOCH + timedelta(microseconds=first.since)
            revision = ended_by.get((int(keys[row]), int(keys[first.newer])))
        elif own and own[0].until != FOREVER:
            until = EPOCH + timedelta(microseconds=own[0].until)
            revision = ended_by.get((int(keys[own[0].older]), int(keys[row])))
        states.append(State(record, record.at, until, revision))
    return sorted(states, key=lambda state: (state.since, state.memory.created_at))


# Profiles.

_LASTING: tuple[MemoryType, ...] = ("semantic",)


def profile(
    engine: Engine, scope: Scope, *, user: str | None, k: int, now: datetime
) -> tuple[ProfileEntry, ...]:
    """Return the lasting facts and preferences that hold, the most important first."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InvalidInput("k", k, "is out of range", "Give at least 1")
    snapshot = engine.snapshots.of(scope.predicate())
    links = engine.links.of(snapshot)
    where: tuple[Filter, ...] = (scope.predicate(), CURRENT, unexpired())
    where += (Or(tuple(Comparison(Field("type"), "eq", each) for each in _LASTING)),)
    if user is not None:
        where += (Comparison(Field("user"), "eq", user),)
    keys = engine.store.keys(And(where))
    records = engine.store.fetch(keys.tolist())
    doubts = _doubts(engine, scope)
    at = to_microseconds(now)
    kept: dict[int, MemoryRecord] = {}
    for key, record in records.items():
        row = int(np.searchsorted(snapshot.columns.key, key))
        told = links.of_rows([row])
        holds = links.successor(row) is None and not any(
            link.newer == row and link.kind in ("plans", "excepts") for link in told
        )
        if holds and to_microseconds(record.at) <= at and _is_said_by_a_person(record):
            kept[row] = record
    entries = [
        _as_entry(row, record, kept, links, doubts.get(record.id, 0.0))
        for row, record in kept.items()
        if not any(
            link.older == row and link.kind == "restates" and link.newer in kept
            for link in links.of_rows([row])
        )
    ]
    entries.sort(key=lambda pair: (-pair[0], -to_microseconds(pair[1].since)))
    return tuple(entry for _, entry in entries[:k])


def _as_entry(
    row: int,
    record: MemoryRecord,
    kept: dict[int, MemoryRecord],
    links: RevisionLinks,
    doubt: float,
) -> tuple[float, ProfileEntry]:
    witnesses = {row}
    waiting = [row]
    while waiting:
        current = waiting.pop()
        for link in links.of_rows([current]):
            earlier = link.older
            if link.newer == current and link.kind == "restates" and earlier in kept:
                waiting += {earlier} - witnesses
                witnesses.add(earlier)
    told = sorted((kept[each] for each in witnesses), key=lambda each: each.at, reverse=True)
    entry = ProfileEntry(
        record.text,
        record.type,
        tuple(each.id for each in told),
        round(1.0 - doubt, 6),
        told[-1].at,
    )
    return record.importance, entry


def _doubts(engine: Engine, scope: Scope) -> dict[str, float]:
    """Return how likely an open conflict says that each memory is superseded, by its id."""
    doubts: dict[str, float] = {}
    for each in visible_entries(engine, scope):
        revision = each.revision
        if revision.state == "conflict" and revision.kind in SUPERSEDING:
            doubts[revision.older] = max(revision.probability, doubts.get(revision.older, 0.0))
    return doubts


def _is_said_by_a_person(record: MemoryRecord) -> bool:
    return record.role.lower() not in ("assistant", "tool", "system", "function")
