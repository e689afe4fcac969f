"""The ledger of revisions: what was decided about two memories, by whom and when, and their rows.

It is a Lance table beside the memories, to which rows are only added: whoever takes a decision back
adds a row that says so, and of the rows of one decision the last one counts. The table also keeps
up to which row the memories were compared with earlier ones, so that no memory is passed over
after a crash. It is made with the first write to a store, under the writer's lock.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import lancedb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekphory.errors import StoreError
from ekphory.scope import OWNER_FIELDS
from ekphory.store import lance_table
from ekphory.store.lance_rows import look_up
from ekphory.store.lance_upkeep import STABLE_ROW_IDS, sweep_table
from ekphory.store.protocol import ScopeColumns, first_key
from ekphory.types import SUPERSEDING, Revision, RevisionKind, to_microseconds

LEDGER_TABLE = "revisions"
LEDGER_FOLDER = f"{LEDGER_TABLE}.lance"
_COMMITS_BETWEEN_MERGES = 64
_TEXTS = (*OWNER_FIELDS, "pool", *(entry.name for entry in fields(Revision)))
_COLUMNS = {
    **dict.fromkeys(_TEXTS, pa.string()),
    **dict.fromkeys(("number", "judged_to", "older_key", "newer_key"), pa.int64()),
    **dict.fromkeys(("decided_at", "since", "until"), pa.timestamp("us", tz="UTC")),
    "probability": pa.float64(),
}
_SCHEMA = pa.schema(list(_COLUMNS.items()))
_LEANS = "leaning"
"""Stands for the state of a conflict that the order of hits follows."""
_NOTE = ""
"""Id of a row that only tells how far the memories were compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One decision, and the rows of the two memories.

    Attributes:
        revision: The decision.
        owner: Org, project, agent and user of both memories.
        pool: Of both memories.
        keys: The rows of the older and of the newer one; a memory that is changed gets another.
        since: When it took effect; timezone-aware UTC.
        until: When an exception ends; None where nothing says so, or it is none.
        leans: Whether the order of hits follows it while it is a conflict.
    """

    revision: Revision
    owner: tuple[str | None, ...]
    pool: str
    keys: tuple[int, int]
    since: datetime
    until: datetime | None = None
    leans: bool = False

    @property
    def orders(self) -> bool:
        """Whether the order of hits follows it: it acts, or is a conflict that leans."""
        return self.revision.state == "active" or (self.leans and self.revision.state == "conflict")

    def moved(self, rename: Callable[[int], int]) -> LedgerEntry:
        """Return the same decision on the rows that these became."""
        keys = rename(self.keys[0]), rename(self.keys[1])
        revision = replace(self.revision, id=revision_id(self.owner, keys))
        return replace(self, revision=revision, keys=keys)


def revision_id(owner: Sequence[str | None], keys: tuple[int, int]) -> str:
    """Return the id of the decision on two rows of one owner, always the same."""
    text = json.dumps([*owner, *keys])
    return blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class LedgerState:
    """The ledger at one version.

    Attributes:
        version: Of the table; -1 where there is none.
        entries: The last entry of each decision, by its id, in the order of these entries.
        judged_to: Key of the last row that was compared with earlier ones; None without a table.
    """

    version: int
    entries: Mapping[str, LedgerEntry]
    judged_to: int | None


_NONE = LedgerState(-1, {}, None)


class Ledger:
    """Reads and adds to the ledger of one store. Safe for several threads."""

    def __init__(
        self,
        uri: str,
        *,
        connection: lancedb.db.DBConnection | None = None,
        sole_writer: lance_table.SoleWriter = lance_table.never,
    ) -> None:
        """Take the Lance URI of a store, which need not have a ledger yet.

        Args:
            uri: Of the store.
            connection: To the store, where it is open; None makes one when it is needed.
            sole_writer: As `NewestVersion` takes it.
        """
        self._store = uri
        self._connection = connection
        self._sole_writer = sole_writer
        # What errors name.
        self._uri = f"{uri}/{LEDGER_FOLDER}"
        self._opened: lance_table.NewestVersion | None = None
        self._guard = threading.RLock()
        self._state = _NONE
        self._last = 0
        self._commits = 0

    @lance_table.with_lance_errors_translated("read")
    def read(self) -> LedgerState:
        """Return the newest state, of whichever process."""
        with self._guard:
            was_open = self._opened is not None
            opened = self._open()
            if opened is None:
                return _NONE
            # What was opened just now is the newest version.
            version = opened.get() if was_open else opened.seen
            if version != self._state.version:
                self._state = self._read_later(opened, version)
            return self._state

    def settle_reads(self) -> None:
        """Wait until no thread is looking for a newer version any more."""
        with self._guard:
            return

    @lance_table.with_lance_errors_translated("lock")
    def fence(self) -> None:
        """Make what others have begun to add fail, and read what they had finished."""
        with self._guard:
            if self._open() is not None:
                lance_table.fence_table(self._store, LEDGER_TABLE)
                self._opened, self._state, self._last = None, _NONE, 0

    @lance_table.with_lance_errors_translated("write")
    def make(self, *, judged_to: int) -> None:
        """Make the ledger, unless there is one; the caller holds the writer's lock.

        Args:
            judged_to: Key of the last memory that was written before there were ledgers.
        """
        with self._guard:
            if self._open() is None:
                row = pa.Table.from_pylist([_note(0, judged_to)], schema=_SCHEMA)
                self._write_table(row, mode="create")

    @lance_table.with_lance_errors_translated("write")
    def append(self, entries: Sequence[LedgerEntry], *, judged_to: int | None = None) -> None:
        """Add decisions in one commit; the caller holds the writer's lock.

        Args:
            entries: What was decided.
            judged_to: How far the memories have been compared; None leaves it where it is.
        """
        with self._guard:
            opened = self._require()
            state = self.read()
            judged = max(judged_to or 0, state.judged_to or 0)
            first = first_key(after=state.version)
            rows = [_to_row(first + place, entry, judged) for place, entry in enumerate(entries)]
            rows = rows or [_note(first, judged)]
            version = int(opened.table.add(pa.Table.from_pylist(rows, schema=_SCHEMA)).version)
            opened.note_own(version)
            changed = {entry.revision.id: entry for entry in entries}
            others = {name: old for name, old in state.entries.items() if name not in changed}
            self._state = LedgerState(version, others | changed, judged)
            self._last = first + len(rows) - 1
            self._commits += 1
            if self._commits >= _COMMITS_BETWEEN_MERGES:
                self._sweep(opened)

    @lance_table.with_lance_errors_translated("purge")
    def purge(self, keep: Callable[[LedgerEntry], bool]) -> None:
        """Rewrite the table without entries that are not kept; the caller holds the lock."""
        with self._guard:
            if self._open() is None:
                return
            state = self.read()
            judged = state.judged_to or 0
            if lance_table.is_remote(self._store):
                self._delete([key for key, entry in state.entries.items() if not keep(entry)])
                return
            kept = filter(keep, state.entries.values())
            # Later than all that was read: what other processes know, they add to by number.
            first = first_key(after=state.version)
            rows = [_note(first, judged)]
            rows += [_to_row(n, entry, judged) for n, entry in enumerate(kept, start=first + 1)]
            self._write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), mode="overwrite")
            self._sweep(self._require())

    def _delete(self, revisions: Sequence[str]) -> None:
        """Delete decisions by commits that fail where another process has written."""
        # A note of how far the memories were compared, which the deleted rows may have told.
        self.append(())
        table = self._require().table
        if revisions:
            named = ", ".join(repr(str(each)) for each in revisions)
            table.delete(f"id IN ({named})")
        # A file with deleted rows still holds them.
        table.update(values_sql={"number": "number"})
        table.optimize(cleanup_older_than=timedelta(milliseconds=1))
        self._opened, self._state, self._last = None, _NONE, 0

    def _write_table(self, rows: pa.Table, *, mode: Literal["create", "overwrite"]) -> None:
        lance_table.connect(self._store).create_table(
            LEDGER_TABLE, data=rows, mode=mode, storage_options=STABLE_ROW_IDS
        )
        self._opened, self._state, self._last = None, _NONE, 0

    def _require(self) -> lance_table.NewestVersion:
        opened = self._open()
        if opened is None:
            raise StoreError(
                f"{self._uri}: the ledger of revisions is gone. Restore a backup with "
                "`ekphory restore`, or open the store anew to go on without what was decided."
            )
        return opened

    def _open(self) -> lance_table.NewestVersion | None:
        """Return the table; None where there is none yet."""
        if self._opened is None:
            if not lance_table.is_remote(self._store) and not has_ledger(self._store):
                return None
            try:
                # A connection has a length, for which it lists its tables.
                if self._connection is None:
                    self._connection = lance_table.connect(self._store)
                table = self._connection.open_table(LEDGER_TABLE)
            except ValueError:
                return None
            commits = lance_table.CommitFiles(lance_table.commits_folder(self._store, LEDGER_TABLE))
            self._commits = commits.count()
            self._opened = lance_table.NewestVersion(
                self._uri, table, commits=commits, sole_writer=self._sole_writer
            )
        return self._opened

    def _read_later(self, opened: lance_table.NewestVersion, version: int) -> LedgerState:
        query = opened.table.search().limit(lance_table.ALL_ROWS)
        if self._state is not _NONE:
            query = query.where(f"number > {self._last}", prefilter=True)
        found = lance_table.read_anew(self._uri, query.to_arrow, renew=opened.table.checkout_latest)
        entries = dict(self._state.entries)
        judged = self._state.judged_to or 0
        for row in found.sort_by("number").to_pylist():
            judged = max(judged, row["judged_to"])
            self._last = max(self._last, row["number"])
            entries.pop(row["id"], None)
            if row["id"] != _NOTE:
                entries[row["id"]] = _to_entry(row)
        return LedgerState(version, entries, judged)

    def _sweep(self, opened: lance_table.NewestVersion) -> None:
        opened.table.optimize()
        opened.table.checkout_latest()
        version = int(opened.table.version)
        opened.note_own(version)
        self._commits = 0
        self._state = replace(self._state, version=version) if self._state.version > 0 else _NONE
        if not lance_table.is_remote(self._store):
            sweep_table(Path(self._store) / LEDGER_FOLDER, keep_from=version)


def has_ledger(uri: str) -> bool:
    """Return whether a store in a directory has a ledger."""
    return (Path(uri) / LEDGER_FOLDER).is_dir()


def _note(number: int, judged_to: int) -> dict[str, object]:
    return {"number": number, "judged_to": judged_to, "id": _NOTE}


def _to_row(number: int, entry: LedgerEntry, judged_to: int) -> dict[str, object]:
    return {
        "number": number,
        "judged_to": judged_to,
        "pool": entry.pool,
        "older_key": entry.keys[0],
        "newer_key": entry.keys[1],
        "since": entry.since,
        "until": entry.until,
        **dict(zip(OWNER_FIELDS, entry.owner, strict=True)),
        **asdict(entry.revision),
        **({"state": _LEANS} if entry.leans and entry.revision.state == "conflict" else {}),
    }


def _to_entry(row: Mapping[str, Any]) -> LedgerEntry:
    values = {entry.name: row[entry.name] for entry in fields(Revision)}
    leans = values["state"] == _LEANS
    values["state"] = "conflict" if leans else values["state"]
    rest = {name: row[name] for name in ("pool", "since", "until")}
    rest["owner"] = tuple(row[name] for name in OWNER_FIELDS)
    rest["keys"] = row["older_key"], row["newer_key"]
    return LedgerEntry(revision=Revision(**values), leans=leans, **rest)


# What the decisions say of the rows of one snapshot, and how that is kept up to date.

_JOINS_NOTHING: tuple[RevisionKind, ...] = ("restates", "plans")
FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class RevisionLink:
    """One revision that acts or leans, between two rows of a snapshot.

    Attributes:
        older, newer: The rows.
        kind, probability: As in `Revision`.
        since: When it took effect, microseconds since 1970.
        until: When an exception ends; the end of time where nothing says so.
        newer_id: Id of the newer memory.
        revision: Id of the decision.
        acts: Whether it is sure enough to act; else it only orders.
    """

    older: int
    newer: int
    kind: RevisionKind
    probability: float
    since: int
    until: int
    newer_id: str
    revision: str
    acts: bool

    @property
    def lapses(self) -> bool:
        """Whether it ends when the newer memory turns out an exception, and that is over."""
        return self.kind in SUPERSEDING and self.probability < 1


@dataclass(frozen=True, slots=True)
class RevisionLinks:
    """The revisions that order hits within one snapshot, from the earliest newer memory on.

    Attributes:
        links: All of them.
        by_row: Places among the links, for each row that one of them names.
        latest: When the last of them took effect, microseconds since 1970.
        first_over: When the first exception ends whose end lets another link lapse.
    """

    links: tuple[RevisionLink, ...] = ()
    by_row: dict[int, list[int]] = field(default_factory=dict)
    latest: int = 0
    first_over: int = FOREVER

    @classmethod
    def of(cls, entries: Iterable[LedgerEntry], columns: ScopeColumns) -> RevisionLinks:
        """Return those of the entries that act or lean on rows of a snapshot.

        Args:
            entries: Of the ledger, of any scope.
            columns: Of the snapshot: a memory that is not in it neither acts nor is acted on.
        """
        ordering = [entry for entry in entries if entry.orders]
        keys = np.array([entry.keys for entry in ordering], np.int64).reshape(-1, 2)
        rows = np.arange(len(columns.key))
        older, newer = (look_up(columns.key, rows, keys[:, place]) for place in (0, 1))
        links = [
            RevisionLink(
                int(old),
                int(new),
                entry.revision.kind,
                entry.revision.probability,
                to_microseconds(entry.since),
                FOREVER if entry.until is None else to_microseconds(entry.until),
                entry.revision.newer,
                entry.revision.id,
                entry.revision.state == "active",
            )
            for entry, old, new in zip(ordering, older, newer, strict=True)
            if old >= 0 and new >= 0
        ]
        at = columns.at
        links.sort(key=lambda link: (at[link.newer], link.newer, link.older))
        return cls._by_row(links)

    @classmethod
    def _by_row(cls, links: Sequence[RevisionLink]) -> RevisionLinks:
        by_row: dict[int, list[int]] = {}
        for place, link in enumerate(links):
            by_row.setdefault(link.older, []).append(place)
            by_row.setdefault(link.newer, []).append(place)
        latest = max((link.since for link in links), default=0)
        lapsing = {link.newer for link in links if link.lapses}
        ends = (link.until for link in links if link.newer in lapsing)
        first_over = min(ends, default=FOREVER)
        return cls(tuple(links), by_row, latest, first_over)

    def acting(self, alive: NDArray[np.bool_]) -> RevisionLinks:
        """Return those that act, without what only orders, between rows that are alive."""
        between = (link for link in self.links if alive[link.older] and alive[link.newer])
        return self._by_row([link for link in between if link.acts])

    def in_force(self, now: int) -> RevisionLinks:
        """Return those that have effect at a moment, in microseconds since 1970.

        What a memory that told an exception was found to supersede stands again once the exception
        is over; what a caller decided does not.
        """
        if self.latest <= now < self.first_over:
            return self
        begun = [link for link in self.links if link.since <= now]
        over = {link.newer for link in begun if link.until <= now}
        return self._by_row([link for link in begun if not link.lapses or link.newer not in over])

    def of_rows(self, rows: Iterable[int]) -> list[RevisionLink]:
        """Return the links that name any of these rows, in order."""
        places = {place for row in rows for place in self.by_row.get(row, ())}
        return [self.links[place] for place in sorted(places)]

    def successor(self, row: int) -> RevisionLink | None:
        """Return the last link that acts and supersedes a row; None where it stands."""
        found = [
            link
            for link in (self.links[place] for place in self.by_row.get(row, ()))
            if link.older == row and link.kind in SUPERSEDING and link.acts
        ]
        return found[-1] if found else None

    def joined_to(self, rows: Iterable[int]) -> list[list[int]]:
        """Return the groups of rows that links join, directly or over others, with any of these.

        What says the same again, and what is planned, joins nothing: both are found by themselves.
        """
        groups, seen = [], set[int]()
        for row in rows:
            if row not in seen and row in self.by_row:
                group = self._reached_from(row)
                seen |= group
                groups.append(sorted(group))
        return groups

    def _reached_from(self, row: int) -> set[int]:
        group, waiting = {row}, [row]
        while waiting:
            for link in (self.links[place] for place in self.by_row[waiting.pop()]):
                if link.kind not in _JOINS_NOTHING:
                    waiting += {link.older, link.newer} - group
                    group |= {link.older, link.newer}
        return group


NO_LINKS = RevisionLinks()


_MOST_SNAPSHOTS = 16


class SnapshotLinks:
    """Finds the links of snapshots, and keeps those of the last few. Safe for several threads."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._kept: OrderedDict[int, tuple[ScopeColumns, int, RevisionLinks]] = OrderedDict()
        self._guard = threading.Lock()

    def of(self, columns: ScopeColumns) -> RevisionLinks:
        """Return the revisions that act within a snapshot, as the ledger has them now."""
        state = self._ledger.read()
        if not state.entries:
            return NO_LINKS
        with self._guard:
            kept = self._kept.get(id(columns))
        if kept is not None and kept[0] is columns and kept[1] == state.version:
            return kept[2]
        links = RevisionLinks.of(state.entries.values(), columns)
        with self._guard:
            # The columns are held too, so that nothing else gets their id.
            self._kept[id(columns)] = (columns, state.version, links)
            self._kept.move_to_end(id(columns))
            while len(self._kept) > _MOST_SNAPSHOTS:
                self._kept.popitem(last=False)
        return links
