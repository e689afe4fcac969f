"""What holds now, and what held before: superseding, conflicts, timelines and profiles."""

from __future__ import annotations

import re
import tomllib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, partial
from importlib.resources import files
from itertools import pairwise
from typing import get_args

import numpy as np

from ekphory.detect import (
    BY_A_PERSON,
    CALLER,
    LONGEST_STATEMENT,
    Verdict,
    authority,
    find_exception_end,
    make_entry,
)
from ekphory.engine import Engine
from ekphory.errors import InvalidInput, MemoryNotFound, ScopeError
from ekphory.filters.tree import And, Comparison, Field, In
from ekphory.history import get, history
from ekphory.models.changes import StatementPair
from ekphory.scope import OWNER_FIELDS, Scope, check_name, get_owner, owned_like
from ekphory.store.ledger import FOREVER, LedgerEntry, RevisionLinks
from ekphory.store.protocol import CURRENT
from ekphory.types import (
    EPOCH,
    REFERENCE_POOLS,
    SUPERSEDING,
    MemoryRecord,
    MemoryType,
    Progress,
    Revision,
    RevisionKind,
    check_count,
    is_storable,
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
        revision: Id of the decision that ended it; None where it holds still, and for an earlier
            version of a memory, which `update` ended.
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
        producer: Who told it last.
    """

    text: str
    type: MemoryType
    evidence: tuple[str, ...]
    probability: float
    since: datetime
    producer: str


@dataclass(frozen=True, slots=True)
class DecidedPair:
    """A decision, and the two memories that it is about.

    Attributes:
        revision: The decision.
        older, newer: The memories.
        since: When it took effect.
    """

    revision: Revision
    older: MemoryRecord
    newer: MemoryRecord
    since: datetime


# Decisions.

OwnedId = tuple[tuple[str | None, ...], str]
"""Whose a memory is, and its id."""


def find_successors(decided: Iterable[DecidedPair]) -> dict[OwnedId, DecidedPair]:
    """Return what superseded each memory that holds no more, by its owner and its id.

    Of several decisions on one memory the one with the newest successor counts, as in a search.
    """
    now = now_utc()
    acting = [
        pair
        for pair in decided
        if pair.revision.state == "active"
        and pair.revision.kind in SUPERSEDING
        and pair.since <= now
    ]
    acting.sort(key=lambda pair: pair.newer.at)
    return {(get_owner(pair.older), pair.older.id): pair for pair in acting}


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
    for name, record in (("old", older), ("by", newer)):
        if record.superseded_by is not None:
            remedy = f"Name {record.superseded_by!r} instead"
            raise InvalidInput(name, record.id, "is an earlier version", remedy)
    if older.id == newer.id:
        raise InvalidInput("by", by, "is the same memory", "Name the memory that supersedes it")
    _check_scopes(older, newer)
    since = newer.at if at is None else to_utc(at, field="at")

    def write() -> Revision:
        engine.store.version()
        keys = _key_of(engine, older), _key_of(engine, newer)
        if kind in SUPERSEDING:
            _check_no_circle(engine, by, keys)
        pair, verdict = StatementPair(older, newer), Verdict(kind, 1.0, "active")
        until = find_exception_end(newer, since=since) if kind == "excepts" else None
        told = {"decided_by": CALLER, "batch": uuid.uuid4().hex[:16]}
        entry = make_entry(keys, pair, verdict, until=until, **told)
        make_ledger(engine)
        engine.ledger.append([replace(entry, since=since)])
        return entry.revision

    return engine.writer.submit(write).result()


def _check_no_circle(engine: Engine, by: str, keys: tuple[int, int]) -> None:
    """Raise where the newer memory, or what supersedes it, is superseded by the older one."""
    acting = [
        entry
        for entry in engine.ledger.read().entries.values()
        if entry.revision.state == "active" and entry.revision.kind in SUPERSEDING
    ]
    seen, waiting = {keys[1]}, [keys[1]]
    while waiting:
        key = waiting.pop()
        for entry in acting:
            if entry.keys[0] != key or not _is_on_current(engine, entry):
                continue
            if entry.keys[1] == keys[0]:
                told = entry.revision
                problem = f"{told.older!r} is superseded by {told.newer!r}"
                remedy = f"Take that back first: unsupersede the decision {told.id}"
                raise InvalidInput("by", by, problem, remedy)
            if entry.keys[1] not in seen:
                seen.add(entry.keys[1])
                waiting.append(entry.keys[1])


def _is_on_current(engine: Engine, entry: LedgerEntry) -> bool:
    """Return whether neither memory was forgotten or changed since it was decided on."""
    found = engine.store.fetch(entry.keys)
    return [record.superseded_by for record in found.values()] == [None, None]


def _check_scopes(older: MemoryRecord, newer: MemoryRecord) -> None:
    for name in (*OWNER_FIELDS, "pool"):
        first, second = getattr(older, name), getattr(newer, name)
        if first != second:
            problem = f"the older memory has {name}={first!r}"
            remedy = "A revision acts within one scope and pool; write the newer memory there"
            raise ScopeError(name, second, problem, remedy)


def _key_of(engine: Engine, record: MemoryRecord) -> int:
    named = And((owned_like(record), CURRENT, Comparison(Field("id"), "eq", record.id)))
    keys = engine.store.keys(named).tolist()
    if not keys:
        raise InvalidInput("id", record.id, "was changed or forgotten meanwhile", "Try again")
    return int(keys[-1])


def unsupersede(engine: Engine, scope: Scope, *, revision: str | None, batch: str | None) -> int:
    """Take back one decision, or all of a batch; return how many that were."""
    if (revision is None) == (batch is None):
        problem = "one of revision and batch must be given"
        raise InvalidInput("revision", revision, problem, "Name what to take back")
    field, value = ("revision", revision) if batch is None else ("batch", batch)
    absent = InvalidInput(field, value, "there is none in this scope", "See `revisions`")
    if not isinstance(value, str):
        raise absent

    def write() -> int:
        named = engine.ledger.read().entries.get(revision or "")
        wanted = [
            each
            for each in visible_entries(engine, scope)
            if (batch is None or batch == each.revision.batch)
            and (revision in (None, each.revision.id) or (named and _is_moved(named, each)))
        ]
        if not wanted:
            raise absent
        acting = [each for each in wanted if each.revision.state != "undone"]
        undone = partial(replace, state="undone", decided_by=CALLER, decided_at=now_utc())
        changed = [replace(each, revision=undone(each.revision)) for each in acting]
        if changed:
            engine.ledger.append(changed)
        return len(changed)

    return engine.writer.submit(write).result()


def _is_moved(entry: LedgerEntry, other: LedgerEntry) -> bool:
    """Return whether one is the other, of memories that were updated since."""
    ids = [(each.revision.older, each.revision.newer) for each in (entry, other)]
    return ids[0] == ids[1] and (entry.owner, entry.pool) == (other.owner, other.pool)


def conflicts(
    engine: Engine, scope: Scope, *, scan: bool, limit: int, on_progress: Progress
) -> tuple[Revision, ...]:
    """Return the decisions that wait for somebody to look, the newest first."""
    check_count("limit", limit)
    if scan:
        _scan_scope(engine, scope, on_progress)
    found = [each.revision for each in visible_entries(engine, scope)]
    waiting = [each for each in reversed(found) if each.state == "conflict"]
    return tuple(waiting[:limit])


def revisions(
    engine: Engine, scope: Scope, *, of: Sequence[str] | None, limit: int
) -> tuple[DecidedPair, ...]:
    """Return the decisions that act or wait, with their memories, the newest first."""
    check_count("limit", limit)
    entries = [each for each in visible_entries(engine, scope) if each.revision.state != "undone"]
    if of is not None:
        if isinstance(of, str | Mapping) or not isinstance(of, Iterable):
            raise InvalidInput("of", of, "must be a list of ids", f"Give [{of!r}]")
        wanted = _check_known(engine, scope, of)
        entries = [each for each in entries if {each.revision.older, each.revision.newer} & wanted]
    newest = entries[: -limit - 1 : -1]
    records = engine.store.fetch(sorted({key for each in newest for key in each.keys}))
    return tuple(
        DecidedPair(each.revision, records[each.keys[0]], records[each.keys[1]], each.since)
        for each in newest
        if records.keys() >= set(each.keys)
    )


def _check_known(engine: Engine, scope: Scope, ids: Sequence[str]) -> set[str]:
    """Return ids once each.

    Raises:
        InvalidInput: One of them is no id.
        MemoryNotFound: The scope sees no memory with one of them.
    """
    for each in ids:
        if not isinstance(each, str) or not each or not is_storable(each):
            raise InvalidInput("of", each, "an id is non-empty text", "Give ids of memories")
    wanted = set(ids)
    if not wanted:
        return wanted
    engine.store.version()
    where = And((scope.predicate(), In(Field("id"), tuple(sorted(wanted)))))
    known = {record.id for record in engine.store.select(where, order="newest")}
    unknown = next((each for each in ids if each not in known), None)
    if unknown is not None:
        raise MemoryNotFound(unknown)
    return wanted


def _scan_scope(engine: Engine, scope: Scope, on_progress: Progress) -> None:
    """Compare all memories of a scope with each other."""
    engine.writer.submit(lambda: make_ledger(engine)).result()
    keys = engine.store.keys(And((scope.own_predicate(), CURRENT))).tolist()
    batch = uuid.uuid4().hex[:16]
    for start in range(0, len(keys), _SCANNED):
        engine.detector.note(engine.detector.compare(keys[start : start + _SCANNED], batch=batch))
        on_progress(min(start + _SCANNED, len(keys)), len(keys))


def visible_entries(engine: Engine, scope: Scope) -> list[LedgerEntry]:
    """Return the ledger's entries both of whose memories the scope sees, the oldest first."""
    snapshot = engine.snapshots.of(scope.predicate())
    keys = snapshot.columns.key[snapshot.alive(to_microseconds(now_utc()))]
    entries = list(engine.ledger.read().entries.values())
    wanted = np.array([each.keys for each in entries], np.int64)
    seen = np.isin(wanted.reshape(-1, 2), keys)
    return [each for each, (older, newer) in zip(entries, seen, strict=True) if older and newer]


# Timelines.


def timeline(
    engine: Engine, scope: Scope, ids: Sequence[str], *, k: int, now: datetime
) -> tuple[State, ...]:
    """Return the states of the topic of the first of some memories that has several.

    Args:
        engine: The store.
        scope: Whose memories they are.
        ids: What a search for the topic found, best first.
        k: Most states, the newest ones.
        now: What began later is none of them yet.
    """
    if not ids:
        return ()
    snapshot = engine.snapshots.of(scope.predicate())
    named = And((scope.predicate(), CURRENT, In(Field("id"), tuple(ids))))
    records = engine.store.fetch(engine.store.keys(named).tolist())
    # One that was changed since the search is history by now, and names the memory that it was of.
    names = {key: record.superseded_by or record.id for key, record in records.items()}
    # One whose text was changed since may have held in its earlier version.
    begun = [key for key, each in records.items() if each.at <= now or each.supersedes is not None]
    ordered = sorted(begun, key=lambda key: ids.index(names[key]))
    rows = snapshot.rows_of(np.array(ordered, np.int64))
    rows = rows[rows >= 0]
    alive = snapshot.alive(to_microseconds(now_utc()))
    links = engine.links.of(snapshot.columns).acting(alive).in_force(to_microseconds(now))
    groups = links.joined_to(rows.tolist())
    group = groups[0] if groups else rows[:1].tolist()
    keys = snapshot.columns.key[group].tolist()
    states = snapshot.records.fetch(keys)
    told: list[State] = []
    for key, row in zip(keys, group, strict=True):
        if key in states:
            told.append(_make_state(states[key], row, links))
            told += _earlier_states(engine, scope, states[key])
    begun_states = [_as_of(now, state) for state in told if state.since <= now]
    ordered_states = sorted(begun_states, key=lambda each: (each.since, each.memory.created_at))
    return tuple(ordered_states[-k:])


def _as_of(now: datetime, state: State) -> State:
    """Return a state as it was known; an end that a decision tells is known ahead."""
    is_open = state.until is not None and state.until > now and state.revision is None
    return replace(state, until=None) if is_open else state


def _make_state(record: MemoryRecord, row: int, links: RevisionLinks) -> State:
    named = links.of_rows([row])
    ending = [link for link in named if link.older == row and link.kind in SUPERSEDING]
    ends = [(link.since, link.revision) for link in ending]
    ends += [
        (link.until, link.revision)
        for link in named
        if link.newer == row and link.kind == "excepts" and link.until != FOREVER
    ]
    if not ends:
        return State(record, record.at, None, None)
    moment, revision = min(ends)
    return State(record, record.at, EPOCH + timedelta(microseconds=moment), revision)


def _earlier_states(engine: Engine, scope: Scope, record: MemoryRecord) -> list[State]:
    """Return what a memory said before its text was updated."""
    versions: list[MemoryRecord] = []
    if record.supersedes is not None:
        with suppress(MemoryNotFound):  # it may be forgotten by now
            versions = history(engine, scope, record.id)
    return [
        State(earlier, earlier.at, later.at, None)
        for later, earlier in pairwise(versions)
        if earlier.text != later.text
    ]


# Profiles.


def profile(
    engine: Engine, scope: Scope, *, user: str | None, k: int, now: datetime
) -> tuple[ProfileEntry, ...]:
    """Return the lasting facts and preferences that hold, the most important first."""
    check_count("k", k)
    if user is not None:
        check_name("user", user)
    snapshot = engine.snapshots.of(scope.predicate())
    columns, at = snapshot.columns, to_microseconds(now)
    alive = snapshot.alive(at)
    links = engine.links.of(columns).acting(alive).in_force(at)
    lasting = (columns.type == "semantic") & alive & (columns.at <= at)
    rows = [row for row in np.flatnonzero(lasting).tolist() if _holds(row, links)]
    records = snapshot.records.fetch(columns.key[rows].tolist())
    kept = {
        row: records[key]
        for row, key in zip(rows, columns.key[rows].tolist(), strict=True)
        if key in records and _is_of(records[key], user) and not _is_planned(records[key])
    }
    doubts = _doubts(engine, scope, now)
    entries = [
        (record.importance, _make_entry(row, kept, links, doubts.get(record.id, 0.0)))
        for row, record in kept.items()
        if not _is_told_again(row, kept, links)
    ]
    entries.sort(key=lambda pair: (-pair[0], -to_microseconds(pair[1].since)))
    return tuple(entry for _, entry in entries[:k])


def _holds(row: int, links: RevisionLinks) -> bool:
    """Return whether nothing supersedes a memory, and it is neither a plan nor an exception."""
    named = links.of_rows([row])
    passing = any(link.newer == row and link.kind in ("plans", "excepts") for link in named)
    return not passing and links.successor(row) is None


def _is_of(record: MemoryRecord, user: str | None) -> bool:
    """Return whether a person said it, and one of the user's memories holds it."""
    said = authority(record) == BY_A_PERSON and record.pool not in REFERENCE_POOLS
    return said and user in (None, record.user)


_PLANS = "plans.toml"


@cache
def _read_wording() -> dict[str, re.Pattern[str]]:
    told: dict[str, str] = tomllib.loads(files(__package__).joinpath(_PLANS).read_text("utf-8"))
    begin = told.pop("begin")
    return {
        name: re.compile(pattern.replace("{begin}", begin), re.VERBOSE | re.IGNORECASE)
        for name, pattern in told.items()
    }


_YEAR = re.compile(r"(?<!\d)20\d\d(?!\d)")


def _is_planned(record: MemoryRecord) -> bool:
    """Return whether a memory is worded as a plan and says nothing besides it."""
    text, wording = record.text.strip(), _read_wording()
    if len(text) > LONGEST_STATEMENT or wording["besides"].search(text):
        return False
    if wording["planned"].match(text):
        return True
    years = map(int, _YEAR.findall(text))
    is_ahead = wording["ahead"].search(text) or any(year > record.at.year for year in years)
    return bool(is_ahead and wording["wanted"].match(text))


def _is_told_again(row: int, kept: Mapping[int, MemoryRecord], links: RevisionLinks) -> bool:
    return any(
        link.older == row and link.kind == "restates" and link.newer in kept
        for link in links.of_rows([row])
    )


def _make_entry(
    row: int, kept: Mapping[int, MemoryRecord], links: RevisionLinks, doubt: float
) -> ProfileEntry:
    witnesses, waiting = {row}, [row]
    while waiting:
        current = waiting.pop()
        for link in links.of_rows([current]):
            if link.newer == current and link.kind == "restates" and link.older in kept:
                waiting += {link.older} - witnesses
                witnesses.add(link.older)
    told = sorted((kept[each] for each in witnesses), key=lambda each: each.at, reverse=True)
    evidence = tuple(each.id for each in told)
    latest = kept[row]
    return ProfileEntry(
        latest.text, latest.type, evidence, round(1 - doubt, 6), told[-1].at, latest.producer
    )


def _doubts(engine: Engine, scope: Scope, now: datetime) -> dict[str, float]:
    """Return how likely an open conflict says that each memory is superseded, by its id."""
    doubts: dict[str, float] = {}
    for each in visible_entries(engine, scope):
        revision = each.revision
        if revision.state == "conflict" and revision.kind in SUPERSEDING and each.since <= now:
            doubts[revision.older] = max(revision.probability, doubts.get(revision.older, 0.0))
    return doubts
