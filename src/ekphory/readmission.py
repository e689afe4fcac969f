"""Taking memories back from an export, as they were: ids, moments and earlier versions included."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from ekphory.engine import Engine
from ekphory.errors import InvalidInput
from ekphory.export_format import FINGERPRINT_KEY, VERSIONS_KEY
from ekphory.ingest import BATCH, Identity, Prepared, alive_ids, make_way, prepare, stored
from ekphory.moments import now_utc, to_utc
from ekphory.records import Draft, draft, thread_of
from ekphory.scope import Scope
from ekphory.store.owner import owner_of
from ekphory.store.store import Presence, first_key
from ekphory.types import Failure, MemoryRecord, WriteReport

_FINGERPRINT = re.compile(r"[0-9a-f]{32}")
_SET_BY_THE_STORE = ("created_at", "supersedes", "superseded_by", FINGERPRINT_KEY)

Unit = list[Draft]
"""A memory behind its earlier versions, oldest first; they are written together or not at all."""


@dataclass(slots=True)
class _Tally:
    added: list[str] = field(default_factory=list)
    skipped: int = 0
    failed: list[Failure] = field(default_factory=list)


def add_exported(engine: Engine, scope: Scope, records: Iterable[Mapping[str, Any]]) -> WriteReport:
    """Write records of an export in batches; what is there already stays as it is."""
    tally = _Tally()
    units = _units(records, scope, tally)
    while batch := list(islice(units, BATCH)):
        fresh, _ = _absent(engine, scope, batch)
        prepared = _prepared(engine, [batch[place] for place in fresh])
        added = engine.writer.submit(lambda: _append(engine, scope, prepared)).result()  # noqa: B023  awaited here
        tally.added += added
        tally.skipped += len(batch) - len(added)
    return WriteReport(len(tally.added), tally.skipped, tally.failed, tuple(tally.added))


def _units(records: Iterable[Mapping[str, Any]], scope: Scope, tally: _Tally) -> Iterator[Unit]:
    for index, given in enumerate(records):
        try:
            yield _unit(given, scope)
        except InvalidInput as error:
            name = given.get("id") if isinstance(given, Mapping) else None
            shown = name if isinstance(name, str) else None
            tally.failed.append(Failure(index, shown, error.field, str(error)))


def _unit(given: Mapping[str, Any], scope: Scope) -> Unit:
    if not isinstance(given, Mapping):
        raise InvalidInput("record", given, "a record is a dict", "Give one of an export")
    versions = given.get(VERSIONS_KEY) or ()
    if not isinstance(versions, list | tuple) or not all(
        isinstance(version, Mapping) for version in versions
    ):
        raise InvalidInput(VERSIONS_KEY, versions, "is no list of records", "Give those it had")
    current = _kept({name: value for name, value in given.items() if name != VERSIONS_KEY}, scope)
    earlier = [_kept(version, scope) for version in versions]
    for version, successor in [(current, None), *((entry, current.record) for entry in earlier)]:
        _check_place(version.record, successor)
    return [*earlier, current]


def _check_place(record: MemoryRecord, successor: MemoryRecord | None) -> None:
    expected = None if successor is None else successor.id
    if record.superseded_by != expected or (
        successor is not None and owner_of(record) != owner_of(successor)
    ):
        raise InvalidInput(
            "superseded_by",
            record.superseded_by,
            f"memory {record.id!r} is not an earlier version of the one it stands with",
            "Take the file as it was exported",
        )


def _kept(given: Mapping[str, Any], scope: Scope) -> Draft:
    """Check one record, and give it exactly as it was stored."""
    writable = {name: value for name, value in given.items() if name not in _SET_BY_THE_STORE}
    if writable.get("id") is None:
        raise InvalidInput("id", None, "is missing", "Take the file as it was exported")
    checked = draft(writable, scope=scope, now=now_utc()).record
    record = replace(
        checked,
        # Checked as it stands: what was stored once is no answer that came back as input.
        text=given["text"],
        created_at=to_utc(given.get("created_at", ""), field="created_at"),
        supersedes=_id(given, "supersedes"),
        superseded_by=_id(given, "superseded_by"),
    )
    return Draft(record, thread_of(record), _fingerprint(given.get(FINGERPRINT_KEY)))


def _id(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not (isinstance(value, str) and value):
        raise InvalidInput(name, value, "is no id", "Take the file as it was exported")
    return value


def _fingerprint(value: object) -> str | None:
    if value is None:
        return None
    # Goes into a condition, so it must be what we wrote.
    if not isinstance(value, str) or not _FINGERPRINT.fullmatch(value):
        raise InvalidInput(
            FINGERPRINT_KEY, value, "is no digest", "Take the file as it was exported"
        )
    return value


def _prepared(engine: Engine, units: list[Unit]) -> list[list[Prepared]]:
    """Embed all rows at once, and give them by unit."""
    rows = iter(prepare(engine, [entry for unit in units for entry in unit]))
    return [list(islice(rows, len(unit))) for unit in units]


def _append(engine: Engine, scope: Scope, prepared: list[list[Prepared]]) -> list[str]:
    """Write what is still absent in one commit; gives the ids of those memories."""
    version = engine.store.version()
    units = [[row.draft for row in unit] for unit in prepared]
    absent, found = _absent(engine, scope, units)
    new = [row for place in absent for row in prepared[place]]
    if new:
        make_way(engine, found, {name for place in absent for name in _identities(units[place])})
        first = first_key(after=version)
        engine.store.append([stored(row, first + place) for place, row in enumerate(new)])
    return [units[place][-1].record.id for place in absent]


def _absent(engine: Engine, scope: Scope, units: list[Unit]) -> tuple[list[int], list[Presence]]:
    """Give the places of the units that are not stored yet, each once, and what is stored."""
    found = _present(engine, scope, units)
    seen = set(alive_ids(found))
    absent: list[int] = []
    for place, unit in enumerate(units):
        identities = _identities(unit)
        if seen.isdisjoint(identities):
            seen |= identities
            absent.append(place)
    return absent, found


def _present(engine: Engine, scope: Scope, units: list[Unit]) -> list[Presence]:
    ids = [unit[-1].record.id for unit in units]
    rows = [entry for unit in units for entry in unit]
    fingerprints = [entry.fingerprint for entry in rows if entry.fingerprint is not None]
    return engine.store.present(scope.own_predicate(), ids, fingerprints) if units else []


def _identities(unit: Unit) -> set[Identity]:
    owner = owner_of(unit[-1].record)
    fingerprints = {entry.fingerprint for entry in unit if entry.fingerprint is not None}
    return {(*owner, name) for name in {unit[-1].record.id, *fingerprints}}
