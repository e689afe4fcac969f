"""Exports: a scope as lines of JSON, each with a sum of its own, and taken back as it was.

    {"ekphory_export": 1, …, "memories": 2, "sum": "…"}
    {"id": "oven", "text": "The oven is broken", …, "versions": 1, "sum": "…"}
    {"id": "oven~1", …, "superseded_by": "oven", "sum": "…"}
    {"id": "sink", …, "versions": 0, "revisions": [{"older": "oven", "newer": "sink", …}], …}
    {"ekphory_export_end": 1, "memories": 2, "versions": 1, "sha256": "…", "sum": "…"}

`docs/export.md` tells what they mean.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, TypeVar, get_args

import numpy as np

from ekphory import __version__, legacy, write
from ekphory.atomic_write import sync_file, write_aside
from ekphory.detect import CALLER
from ekphory.engine import Engine
from ekphory.errors import EkphoryError, InvalidInput, MemoryNotFound
from ekphory.filters.tree import And, Comparison, Field, Filter, Or
from ekphory.history import get, unexpired
from ekphory.scope import OWNER_FIELDS, Scope, get_owner, owned_in_any_session, owned_like
from ekphory.store.lance_snapshot import KeptMemory, LanceSnapshot, StateGone
from ekphory.store.ledger import Ledger, LedgerEntry, revision_id
from ekphory.store.protocol import CURRENT, IntArray, Presence
from ekphory.types import (
    Failure,
    MemoryRecord,
    Progress,
    Revision,
    RevisionKind,
    RevisionState,
    WriteReport,
    now_utc,
    to_plain_data,
    to_utc,
)

FORMAT_VERSION = 1
HEADER_KEY = "ekphory_export"
END_KEY = "ekphory_export_end"
SUM_KEY = "sum"
VERSIONS_KEY = "versions"
REVISIONS_KEY = "revisions"
FINGERPRINT_KEY = "fingerprint"

_NAMES = tuple(entry.name for entry in fields(MemoryRecord))
_MOMENTS = ("at", "created_at", "expires_at")
_values = attrgetter(*_NAMES)
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_SUM = re.compile(rb',"sum":"([0-9a-f]{16})"\}\Z')


class DamagedLine(EkphoryError, ValueError):
    """A line whose sum is missing or does not fit it."""


def encode_line(content: dict[str, Any]) -> bytes:
    """Return one line, with its sum and a line break."""
    body = _encode(content).encode()
    return body[:-1] + f',"{SUM_KEY}":"{_sum_of(body)}"}}\n'.encode()


def decode_line(line: bytes) -> dict[str, Any]:
    """Return the content of one line, without its sum.

    Raises:
        DamagedLine: It was cut off or changed since it was written.
    """
    bare = line.rstrip(b"\r\n")
    found = _SUM.search(bare)
    if found is None:
        raise DamagedLine("cut off, or not a line of an export")
    body = bare[: found.start()] + b"}"
    if _sum_of(body).encode() != found[1]:
        raise DamagedLine("changed since it was written")
    try:
        content: dict[str, Any] = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DamagedLine("not usable JSON") from error
    return legacy.rename_keys(content)


def memory_content(record: MemoryRecord, fingerprint: str | None) -> dict[str, Any]:
    """Return every field of a memory in the form that JSON has; moments as ISO 8601 in UTC."""
    content: dict[str, Any] = dict(zip(_NAMES, _values(record), strict=True))
    content["predicted"] = sorted(record.predicted)
    content["metadata"] = dict(record.metadata)
    for name in _MOMENTS:
        if content[name] is not None:
            content[name] = content[name].isoformat()
    content[FINGERPRINT_KEY] = fingerprint
    return content


def _sum_of(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=8).hexdigest()


# Exporting.

_MEMORIES_READ = 256
_ATTEMPTS = 10
"""How often something is read from the beginning where its state is purged meanwhile."""
Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What an export holds.

    Attributes:
        target: The file; None where it went to a stream.
        memories: Number of memories.
        versions: Number of earlier versions of them.
        expired: Number of memories that were left out because they have expired.
        bytes: Length of the export.
        sha256: Digest of the lines of memories and versions; equal for equal contents.
    """

    target: Path | None
    memories: int
    versions: int
    expired: int
    bytes: int
    sha256: str


def export_to_file(
    uris: Sequence[str], scope: Scope, target: Path, on_progress: Progress
) -> ExportReport:
    """Write an export beside its target, and put it in place once it is whole and durable.

    Args:
        uris: Of one store, or of the shards of one.
        scope: What is exported.
        target: The file.
        on_progress: Called with how many memories are written, and of how many.

    Raises:
        InvalidInput: The target is a folder, or lies in none.
    """

    def export(stream: IO[bytes]) -> ExportReport:
        return export_to_stream(uris, scope, stream, on_progress)

    return fill_file(target, partial(export_anew, export))


def export_anew(export: Callable[[IO[bytes]], ExportReport], stream: IO[bytes]) -> ExportReport:
    """Write an export to a stream that holds nothing else, anew where its state is purged."""

    def begin() -> ExportReport:
        stream.seek(0)
        stream.truncate()
        return export(stream)

    return _read_anew(begin)


def _read_anew(read: Callable[[], Read]) -> Read:
    """Read something, from the beginning again where its state is purged meanwhile."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(StateGone):
            return read()
    return read()


def fill_file(target: Path, fill: Callable[[IO[bytes]], ExportReport]) -> ExportReport:
    """Let an export be written beside its target, and put it there once it is whole and durable.

    Raises:
        InvalidInput: The target is a folder, or lies in none.
    """
    if target.is_dir() or not target.parent.is_dir():
        problem = "not a file in an existing folder"
        raise InvalidInput("target", str(target), problem, "Name such a file")
    with write_aside(target) as part, open(part, "xb", opener=_open_for_owner) as stream:
        report = fill(stream)
        sync_file(stream)
    return replace(report, target=target)


def export_to_stream(
    uris: Sequence[str], scope: Scope, stream: IO[bytes], on_progress: Progress
) -> ExportReport:
    """Write an export to a stream; without its last line it is not whole.

    Raises:
        InvalidInput: It is none.
    """
    if not hasattr(stream, "write"):
        problem = "neither a path nor a binary stream"
        raise InvalidInput("target", stream, problem, "Give either")
    parts = [_Part(LanceSnapshot(uri), Ledger(uri)) for uri in uris]
    return _Export(parts, scope, stream).write(on_progress)


def read_exported(engine: Engine, scope: Scope, memory_id: str) -> dict[str, Any]:
    """Read one memory with its earlier versions in the form that `add_exported` takes back.

    Raises:
        MemoryNotFound: There is none with that id in the scope.
        InvalidInput: It is an earlier version itself.
    """
    record = get(engine, scope, memory_id)
    if record.superseded_by is not None:
        remedy = f"Take {record.superseded_by!r} instead"
        raise InvalidInput("id", memory_id, "is an earlier version", remedy)
    named = (Comparison(Field(name), "eq", record.id) for name in ("id", "superseded_by"))
    where = And((owned_like(record), Or(tuple(named))))
    return _read_anew(partial(_read_whole, engine, where, memory_id))


def _read_whole(engine: Engine, where: Filter, memory_id: str) -> dict[str, Any]:
    """Read the one memory of which a condition holds, and of its earlier versions."""
    state = LanceSnapshot(engine.uri)
    part = _Part(state, engine.ledger, sides=(min, max))
    found = list(part.read_memories(where, state.rows(where)))
    if not found:
        # It was forgotten since it was looked up.
        raise MemoryNotFound(memory_id)
    memory, *versions = found
    return memory | {VERSIONS_KEY: versions}


def _open_for_owner(path: str, flags: int) -> int:
    """Open a file that its owner alone may read, as the store may be."""
    return os.open(path, flags, 0o600)


class _Versions:
    """Where the earlier versions of a memory are: sixteen bytes for each, however long its id."""

    def __init__(self, state: LanceSnapshot, where: Filter) -> None:
        pairs = ((_digest(successor), row) for row, successor in state.successors(where))
        found = np.fromiter(pairs, np.dtype((np.int64, 2)))
        self._state = state
        self._digests, self._rows = found[np.argsort(found[:, 0], kind="stable")].T

    def of(self, memories: list[KeptMemory]) -> dict[int, list[KeptMemory]]:
        """Read the earlier versions of these memories, oldest first, by the memory's key."""
        wanted = {_successor(memory): memory.key for memory in memories}
        digests = np.array([_digest(successor) for successor in wanted], np.int64)
        rows = self._rows[np.isin(self._digests, digests)]
        found: dict[int, list[KeptMemory]] = {}
        for version in self._state.take(rows):
            # Digests may be the same by chance.
            key = wanted.get((version.record.superseded_by, *_successor(version)[1:]))
            if key is not None:
                found.setdefault(key, []).append(version)
        return found


class _Part:
    """One state of one store, and what was decided on its memories.

    Decisions come with the row of their memory that was written later, earlier, or both. An export
    has them with the later one: where that is read, both are there.
    """

    def __init__(
        self,
        state: LanceSnapshot,
        ledger: Ledger,
        *,
        sides: Sequence[Callable[[int, int], int]] = (max,),
    ) -> None:
        self.state = state
        self._decided: dict[int, list[LedgerEntry]] = {}
        entries = ledger.read().entries.values()
        # What was decided on a memory that was forgotten or changed since acts on nothing.
        current = state.current_keys() if entries else frozenset()
        for entry in entries:
            for side in sides if current.issuperset(entry.keys) else ():
                self._decided.setdefault(side(*entry.keys), []).append(entry)

    def read_memories(self, where: Filter, rows: IntArray) -> Iterator[dict[str, Any]]:
        """Read memories, each before its earlier versions.

        Args:
            where: Holds for all earlier versions of these memories.
            rows: Where the memories are.
        """
        versions = _Versions(self.state, where)
        for start in range(0, len(rows), _MEMORIES_READ):
            memories = self.state.take(rows[start : start + _MEMORIES_READ])
            earlier = versions.of(memories)
            for memory in memories:
                its_own = earlier.get(memory.key, [])
                decided = [revision_content(each) for each in self._decided.get(memory.key, ())]
                told = {REVISIONS_KEY: decided} if decided else {}
                yield _content(memory) | {VERSIONS_KEY: len(its_own)} | told
                yield from map(_content, its_own)


class _Export:
    """One export: the lines of one state of the store, counted and summed up."""

    def __init__(self, parts: Sequence[_Part], scope: Scope, stream: IO[bytes]) -> None:
        self._parts = parts
        self._scope = scope
        self._stream = stream
        self._digest = hashlib.sha256()
        self._bytes = 0

    def write(self, on_progress: Progress) -> ExportReport:
        own = self._scope.own_predicate()
        where = And((own, unexpired()))
        rows = [part.state.rows(where) for part in self._parts]
        total = sum(map(len, rows))
        expired = sum(part.state.count(And((own, CURRENT))) for part in self._parts) - total
        header: dict[str, Any] = {"ekphory": __version__, "exported_at": now_utc().isoformat()}
        header |= {"scope": asdict(self._scope), "memories": total}
        self._write_line({HEADER_KEY: FORMAT_VERSION} | header)
        written = versions = 0
        for part, own_rows in zip(self._parts, rows, strict=True):
            for content in part.read_memories(own, own_rows):
                self._digest.update(self._write_line(content))
                if VERSIONS_KEY in content:
                    written += 1
                    on_progress(written, total)
                else:
                    versions += 1
        counts: dict[str, Any] = {"memories": written, "versions": versions}
        counts["sha256"] = self._digest.hexdigest()
        self._write_line({END_KEY: FORMAT_VERSION} | counts)
        self._stream.flush()
        return ExportReport(target=None, expired=expired, bytes=self._bytes, **counts)

    def _write_line(self, content: dict[str, Any]) -> bytes:
        line = encode_line(content)
        self._stream.write(line)
        self._bytes += len(line)
        return line


def revision_content(entry: LedgerEntry) -> dict[str, Any]:
    """Return a decision in the form that JSON has; moments as ISO 8601 in UTC."""
    content = asdict(entry.revision) | {"since": entry.since, "until": entry.until}
    if entry.leans:
        content["leans"] = True
    del content["id"]  # it is made of the rows, which are others where it is taken back
    return {name: to_plain_data(value) for name, value in content.items()}


_REVISION_MOMENTS = ("decided_at", "since", "until")


def _content(memory: KeptMemory) -> dict[str, Any]:
    return memory_content(memory.record, memory.fingerprint)


def _successor(memory: KeptMemory) -> tuple[str | None, ...]:
    record = memory.record
    return (record.id, record.session, *get_owner(record))


def _digest(successor: tuple[str | None, ...]) -> int:
    digest = hashlib.blake2b(repr(successor).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


# Taking memories back, as they were.

_REMEDY = "Take the file as it was exported"
_FINGERPRINT = re.compile(r"[0-9a-f]{32}")
_SET_BY_THE_STORE = ("created_at", "supersedes", "superseded_by", FINGERPRINT_KEY)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A memory with its earlier versions; they are written together or not at all.

    Attributes:
        drafts: The versions, oldest first, and the memory.
        revisions: Decisions on the memory and one that was written before it.
    """

    drafts: list[write.Draft]
    revisions: list[Mapping[str, Any]]


def add_exported(engine: Engine, scope: Scope, records: Iterable[Mapping[str, Any]]) -> WriteReport:
    """Write records of an export in batches; what is there already stays as it is."""
    added: list[str] = []
    failed: list[Failure] = []
    skipped = 0
    units = write.read_records(records, partial(_read_unit, scope), failed)
    while batch := list(islice(units, write.BATCH)):
        fresh, _ = _pick_absent(engine, scope, [unit.drafts for unit in batch])
        kept = [batch[place] for place in fresh]
        rows = iter(
            write.prepare(engine.embedder, [entry for unit in kept for entry in unit.drafts])
        )
        prepared = [list(islice(rows, len(unit.drafts))) for unit in kept]
        # Also of what was there: a process may have been killed between the two.
        decided = [(unit.drafts[-1].record, unit.revisions) for unit in batch if unit.revisions]
        ids = engine.writer.submit(partial(_append, engine, scope, prepared, decided)).result()
        added += ids
        skipped += len(batch) - len(ids)
    return WriteReport(len(added), skipped, failed, tuple(added))


def _read_unit(scope: Scope, given: Mapping[str, Any]) -> _Unit:
    if not isinstance(given, Mapping):
        raise InvalidInput("record", given, "a record is a dict", "Give one of an export")
    versions = given.get(VERSIONS_KEY) or ()
    if not isinstance(versions, list | tuple) or not all(
        isinstance(version, Mapping) for version in versions
    ):
        raise InvalidInput(VERSIONS_KEY, versions, "must be a list of records", "Give those it had")
    apart = (VERSIONS_KEY, REVISIONS_KEY)
    current = _read_draft(scope, {key: given[key] for key in given if key not in apart})
    # They are there as long as their memory is.
    kept = {"expires_at": given.get("expires_at")}
    earlier = [_read_draft(scope, {**version, **kept}) for version in versions]
    for version, successor in [(current, None), *((entry, current.record) for entry in earlier)]:
        _check_place(version.record, successor)
    if earlier and current.record.supersedes is None:
        raise InvalidInput("supersedes", None, "is missing beside earlier versions", _REMEDY)
    return _Unit([*earlier, current], _read_revisions(given.get(REVISIONS_KEY) or ()))


def _read_revisions(given: object) -> list[Mapping[str, Any]]:
    """Check decisions, field by field."""
    if not isinstance(given, list | tuple) or not all(isinstance(each, Mapping) for each in given):
        raise InvalidInput(REVISIONS_KEY, given, "must be a list of decisions", _REMEDY)
    return [_check_revision(each) for each in given]


def _check_revision(given: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in ("older", "newer", "batch", "decided_by"):
        if not isinstance(given.get(name), str):
            raise _refusal(name, given.get(name), "must be a string")
    for name, choices in _REVISION_CHOICES.items():
        if given.get(name) not in choices:
            raise _refusal(name, given.get(name), f"must be one of {', '.join(choices)}")
    probability = given.get("probability")
    if isinstance(probability, bool) or not isinstance(probability, int | float):
        raise _refusal("probability", probability, "must be a number")
    if not isinstance(given.get("leans", False), bool):
        raise _refusal("leans", given["leans"], "must be true or false")
    moments = {
        name: None if given.get(name) is None else to_utc(given[name], field=name)
        for name in _REVISION_MOMENTS
    }
    told = {name: moments[name] or now_utc() for name in ("decided_at", "since")}
    return {**given, **moments, **told}


def _refusal(name: str, value: object, problem: str) -> InvalidInput:
    return InvalidInput(f"{REVISIONS_KEY}.{name}", value, problem, _REMEDY)


_REVISION_CHOICES: Mapping[str, tuple[str, ...]] = {
    "kind": get_args(RevisionKind),
    "state": get_args(RevisionState),
}


def _check_place(record: MemoryRecord, successor: MemoryRecord | None) -> None:
    expected = None if successor is None else successor.id
    if record.superseded_by != expected or (
        successor is not None and get_owner(record) != get_owner(successor)
    ):
        problem = f"memory {record.id!r} is not an earlier version of the one it stands with"
        raise InvalidInput("superseded_by", record.superseded_by, problem, _REMEDY)


def _read_draft(scope: Scope, given: Mapping[str, Any]) -> write.Draft:
    """Check one record, and return it exactly as it was stored."""
    writable = {name: value for name, value in given.items() if name not in _SET_BY_THE_STORE}
    if writable.get("id") is None:
        raise InvalidInput("id", None, "is missing", _REMEDY)
    checked = write.make_draft(writable, scope=scope, now=now_utc()).record
    record = replace(
        checked,
        # As it stands: what was stored once has not come back as input.
        text=given["text"],
        created_at=to_utc(given.get("created_at", ""), field="created_at"),
        supersedes=_check_id(given, "supersedes"),
        superseded_by=_check_id(given, "superseded_by"),
    )
    return write.Draft(
        record, write.compute_thread(record), _check_fingerprint(given.get(FINGERPRINT_KEY))
    )


def _check_id(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not (isinstance(value, str) and value):
        raise InvalidInput(name, value, "must be an id", _REMEDY)
    return value


def _check_fingerprint(value: Any) -> str | None:  # noqa: ANN401  whatever a file holds
    # Goes into a condition, so it must be what we wrote.
    if value is not None and not (isinstance(value, str) and _FINGERPRINT.fullmatch(value)):
        raise InvalidInput(FINGERPRINT_KEY, value, "must be a digest", _REMEDY)
    return value


_Decided = list[tuple[MemoryRecord, list[Mapping[str, Any]]]]
"""Memories, each with decisions on it and another one."""


def _append(
    engine: Engine, scope: Scope, prepared: list[list[write.Prepared]], decided: _Decided
) -> list[str]:
    """Write what is still absent in one commit; return the ids of those memories."""
    version = engine.store.version()
    units = [[row.draft for row in unit] for unit in prepared]
    absent, found = _pick_absent(engine, scope, units)
    if absent:
        for session, there in found.items():
            own = [units[place] for place in absent if _session_of(units[place]) == session]
            write.delete_expired(
                engine, there, {name for unit in own for name in _identities(unit)}
            )
        write.append_after(engine, version, [row for place in absent for row in prepared[place]])
    _note_revisions(engine, decided)
    return [units[place][-1].record.id for place in absent]


def _note_revisions(engine: Engine, decided: _Decided) -> None:
    """Add decisions to the ledger that it lacks, but for those on a memory that is not there.

    What a caller decided takes the place of what a model did meanwhile.
    """
    if not decided:
        return
    write.make_ledger(engine)
    known = engine.ledger.read().entries
    entries = []
    for record, revisions in decided:
        for given in revisions:
            older, newer = (_newest_key(engine, record, given[side]) for side in ("older", "newer"))
            if older is not None and newer is not None:
                entries.append(_make_entry(record, given, (older, newer)))
    by_caller = {name for name, entry in known.items() if entry.revision.decided_by == CALLER}
    new = [
        entry
        for entry in entries
        if entry.revision.id not in known
        or (entry.revision.decided_by == CALLER and entry.revision.id not in by_caller)
    ]
    if new:
        engine.ledger.append(new)


def _newest_key(engine: Engine, record: MemoryRecord, memory_id: str) -> int | None:
    named = Comparison(Field("id"), "eq", memory_id)
    # The other memory of a decision may be of another session.
    owned = owned_like(record) if memory_id == record.id else owned_in_any_session(record)
    keys = engine.store.keys(And((owned, CURRENT, named))).tolist()
    return max(keys, default=None)


def _make_entry(
    record: MemoryRecord, given: Mapping[str, Any], keys: tuple[int, int]
) -> LedgerEntry:
    owner = get_owner(record)
    names = [entry.name for entry in fields(Revision) if entry.name != "id"]
    return LedgerEntry(
        revision=Revision(id=revision_id(owner, keys), **{name: given[name] for name in names}),
        owner=owner,
        pool=record.pool,
        keys=keys,
        since=given["since"],
        until=given["until"],
        leans=given.get("leans", False),
    )


_Found = dict[str | None, list[Presence]]
"""What is stored, by its session: what is taken back keeps its own, and an id is of one session."""


def _pick_absent(
    engine: Engine, scope: Scope, units: list[list[write.Draft]]
) -> tuple[list[int], _Found]:
    """Return the places of the units that are not stored yet, each once, and what is stored."""
    found = _present(engine, scope, units)
    seen = {session: set(write.find_alive_ids(there)) for session, there in found.items()}
    absent: list[int] = []
    for place, unit in enumerate(units):
        own, identities = seen.setdefault(_session_of(unit), set()), _identities(unit)
        if own.isdisjoint(identities):
            own |= identities
            absent.append(place)
    return absent, found


def _present(engine: Engine, scope: Scope, units: list[list[write.Draft]]) -> _Found:
    ids = [unit[-1].record.id for unit in units]
    rows = [entry for unit in units for entry in unit]
    fingerprints = [entry.fingerprint for entry in rows if entry.fingerprint is not None]
    found = write.find_present(engine, scope, ids, fingerprints) if units else []
    records = engine.store.fetch([entry.key for entry in found])
    by_session: _Found = {}
    for entry in found:
        if entry.key in records:
            # What names no project is, to a handle of "default", in the one that it fills in.
            owner = tuple(
                getattr(scope, name) or value
                for name, value in zip(OWNER_FIELDS, entry.owner, strict=True)
            )
            there = by_session.setdefault(records[entry.key].session, [])
            there.append(replace(entry, owner=owner))
    return by_session


def _session_of(unit: list[write.Draft]) -> str | None:
    return unit[-1].record.session


def _identities(unit: list[write.Draft]) -> set[write.Identity]:
    owner = get_owner(unit[-1].record)
    fingerprints = {entry.fingerprint for entry in unit if entry.fingerprint is not None}
    return {(*owner, name) for name in {unit[-1].record.id, *fingerprints}}
