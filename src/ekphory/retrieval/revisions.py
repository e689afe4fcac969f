"""The revisions that order hits within one snapshot, by row, and how they are kept up to date."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ekphory.retrieval.snapshot import ScopeSnapshot
from ekphory.store.ledger import Ledger, LedgerEntry
from ekphory.store.protocol import ScopeColumns
from ekphory.types import SUPERSEDING, RevisionKind, to_microseconds

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


@dataclass(frozen=True, slots=True)
class RevisionLinks:
    """The revisions that order hits within one snapshot, from the earliest newer memory on.

    Attributes:
        links: All of them.
        by_row: Places among the links, for each row that one of them names.
    """

    links: tuple[RevisionLink, ...] = ()
    by_row: dict[int, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[LedgerEntry], snapshot: ScopeSnapshot) -> RevisionLinks:
        """Return those of the entries that act or lean on rows of a snapshot.

        Args:
            entries: Of the ledger, of any scope.
            snapshot: What is seen; a memory that is not in it neither acts nor is acted on.
        """
        ordering = [entry for entry in entries if entry.orders]
        keys = np.array([entry.keys for entry in ordering], np.int64).reshape(-1, 2)
        older, newer = snapshot.rows_of(keys[:, 0]), snapshot.rows_of(keys[:, 1])
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
        at = snapshot.columns.at
        links.sort(key=lambda link: (at[link.newer], link.newer, link.older))
        return cls._by_row(links)

    @classmethod
    def _by_row(cls, links: Sequence[RevisionLink]) -> RevisionLinks:
        by_row: dict[int, list[int]] = {}
        for place, link in enumerate(links):
            by_row.setdefault(link.older, []).append(place)
            by_row.setdefault(link.newer, []).append(place)
        return cls(tuple(links), by_row)

    def acting(self) -> RevisionLinks:
        """Return those that act, without what only orders."""
        return self._by_row([link for link in self.links if link.acts])

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

    def of(self, snapshot: ScopeSnapshot) -> RevisionLinks:
        """Return the revisions that act within a snapshot, as the ledger has them now."""
        state = self._ledger.read()
        if not state.entries:
            return NO_LINKS
        columns = snapshot.columns
        with self._guard:
            kept = self._kept.get(id(columns))
        if kept is not None and kept[0] is columns and kept[1] == state.version:
            return kept[2]
        links = RevisionLinks.of(state.entries.values(), snapshot)
        with self._guard:
            # The columns are held too, so that nothing else gets their id.
            self._kept[id(columns)] = (columns, state.version, links)
            self._kept.move_to_end(id(columns))
            while len(self._kept) > _MOST_SNAPSHOTS:
                self._kept.popitem(last=False)
        return links
