"""Which memories there are, by id and by fingerprint."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekphory.filters.lance_sql import to_lance_sql
from ekphory.filters.tree import And, Field, Filter, In
from ekphory.scope import OWNER_FIELDS
from ekphory.store import lance_rows
from ekphory.store.protocol import CURRENT, NEVER, Presence, StoredMemory

_MOST_RECENT = 8192


class KnownNames:
    """A set of names kept as 64-bit hashes, eight bytes each; it only grows.

    A name that it lacks was never noted. One that it has may be another of the same hash, or may
    be gone from the table by now, so whoever needs to know asks the table.
    """

    def __init__(self) -> None:
        self._sorted: NDArray[np.int64] = np.empty(0, np.int64)
        self._recent: set[int] = set()

    def note(self, names: Iterable[str | None]) -> None:
        """Add names; None is passed over."""
        self._recent.update(hash(name) for name in names if name is not None)
        if len(self._recent) > _MOST_RECENT:
            recent = np.fromiter(self._recent, np.int64, len(self._recent))
            self._sorted = np.union1d(self._sorted, recent)
            self._recent = set()

    def possible(self, names: Sequence[str]) -> list[str]:
        """Return those of the names that may have been noted, in order."""
        hashes = np.fromiter((hash(name) for name in names), np.int64, len(names))
        found = np.zeros(len(names), np.bool_)
        if len(self._sorted):
            places = np.minimum(np.searchsorted(self._sorted, hashes), len(self._sorted) - 1)
            found = self._sorted[places] == hashes
        return [
            name
            for name, listed, value in zip(names, found.tolist(), hashes.tolist(), strict=True)
            if listed or value in self._recent
        ]


Rows = Callable[[str, list[str]], pa.Table]
"""Reads some columns of the rows that hold a condition."""

_COLUMNS = ["key", "id", "superseded_by", "fingerprint", "expires_at", *OWNER_FIELDS]
_NAMES_A_QUERY = 500
# Knowing all names costs a scan, which pays for whoever writes more than once.
_READS_BEFORE_LOADING = 2


class LancePresence:
    """Looks memories up by id and by fingerprint.

    A look-up reads every file that no index covers yet, so a busy writer would pay for its own
    last hundred writes each time. Therefore all names are known by their hashes, up to a version
    of the table, and only a name that may be there is looked up.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._known = KnownNames()
        self._version = 0
        self._last_key = 0
        self._reads = 0
        self._guard = threading.Lock()

    def find(
        self, where: Filter, names: tuple[Sequence[str], Sequence[str]], *, version: int
    ) -> list[Presence]:
        """Find which of these (ids, fingerprints) matching memories have.

        Args:
            where: Condition on the memories.
            names: Ids and fingerprints to look for.
            version: Number of the table's version that is read.
        """
        ids, fingerprints = names
        with self._guard:
            self._reads += 1
            if self._reads > _READS_BEFORE_LOADING:
                if self._version != version:
                    self._catch_up()
                    self._version = version
                ids, fingerprints = self._known.possible(ids), self._known.possible(fingerprints)
        named = [
            to_lance_sql(And((CURRENT, In(Field("id"), tuple(chunk))))) for chunk in _chunks(ids)
        ]
        # Digests of ours, hexadecimal, so they need no escaping.
        named += [
            f"fingerprint IN ({', '.join(repr(name) for name in chunk)})"
            for chunk in _chunks(fingerprints)
        ]
        condition = f"passage = 0 AND ({to_lance_sql(where)})"
        found = [entry for one in named for entry in self._read(f"{condition} AND ({one})")]
        # A row may be found by its id and by its fingerprint.
        return list({entry.key: entry for entry in found}.values())

    def note(self, memories: Sequence[StoredMemory], *, before: int, after: int) -> None:
        """Take in what was just written, which brought the table from one version to another."""
        with self._guard:
            # An earlier version keeps its row under another id, which its successor names.
            self._known.note(memory.record.id for memory in memories)
            self._known.note(memory.record.supersedes for memory in memories)
            self._known.note(memory.fingerprint for memory in memories)
            # Only then did nobody else write in between.
            if self._version == before and after == before + 1:
                self._version = after
                self._last_key = max([self._last_key, *(memory.key for memory in memories)])

    def note_rearranged(self, *, before: int, after: int) -> None:
        """Take in commits that moved memories, and changed none."""
        with self._guard:
            if self._version == before:
                self._version = after

    def drop_absent(self, ids: Sequence[str], *, version: int) -> list[str]:
        """Return the ids without those that no memory has, as far as that is known."""
        with self._guard:
            if self._version != version or self._reads <= _READS_BEFORE_LOADING:
                return list(ids)
            return self._known.possible(ids)

    def _catch_up(self) -> None:
        condition = f"passage = 0 AND key > {self._last_key}"
        names = ["id", "supersedes", "fingerprint"]
        rows = self._rows(condition, ["key", *names])
        for batch in rows.to_batches():
            for name in names:
                self._known.note(batch[name].to_pylist())
        if rows.num_rows:
            self._last_key = int(pa.compute.max(rows["key"]).as_py())

    def _read(self, condition: str) -> list[Presence]:
        table = self._rows(condition, _COLUMNS)
        names = ("key", "id", "superseded_by", "fingerprint")
        columns = [table[name].to_pylist() for name in names]
        owners = zip(*(table[name].to_pylist() for name in OWNER_FIELDS), strict=True)
        expiry = lance_rows.microseconds(table["expires_at"], missing=NEVER).tolist()
        return [
            Presence(key, successor or name, fingerprint, owner, until, successor is not None)
            for key, name, successor, fingerprint, owner, until in zip(
                *columns, owners, expiry, strict=True
            )
        ]


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _NAMES_A_QUERY):
        yield names[start : start + _NAMES_A_QUERY]
