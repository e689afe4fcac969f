"""What ranking needs of one scope, held in memory, immutable and brought up to date."""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import StoreError
from ekphory.filters.lance_sql import to_lance_sql
from ekphory.filters.tree import And, Filter
from ekphory.models.embedder import EmbedderIdentity, EmbeddingModel
from ekphory.models.late_bound import find_late_bound, type_codes
from ekphory.retrieval.dense import (
    DenseArm,
    IndexedVectors,
    LateBoundRows,
    LateBoundWindows,
    ResidentVectors,
    ScopeVectors,
    length_discounts,
)
from ekphory.retrieval.lexical import LexicalIndex, Postings
from ekphory.store.blocks import RecordCache, ScopeRecords, columns_of, current_within, vectors_of
from ekphory.store.kept_arrays import Array, KeptArrays
from ekphory.store.lance_rows import look_up
from ekphory.store.protocol import (
    CURRENT,
    NO_THREAD,
    RESIDENT_ROWS,
    IntArray,
    KeyedVectors,
    ScopeColumns,
    ScoreArray,
    Store,
    StoreIdentity,
    VectorsReplaced,
)
from ekphory.types import REFERENCE_POOLS, to_microseconds

# Previous and next memory of the same session, and what their scores lend to a memory.
#
# A turn is understood through its neighbours ("Where did you go?" — "To Lisbon."), so a share of
# the neighbours' BM25 is added to a memory's own. Taking it from the neighbour's score at query
# time equals indexing the neighbour's text again as fields of this memory, and nothing is stored
# twice.

FIRST_NEIGHBOUR_SHARE = 0.3
SECOND_NEIGHBOUR_SHARE = 0.1

LARGEST_SHARE = 1 + 2 * (FIRST_NEIGHBOUR_SHARE + SECOND_NEIGHBOUR_SHARE)
"""A memory's score with its neighbours' is at most so many times the best score among them."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Row of the previous and of the next memory by row, -1 where there is none."""

    previous: NDArray[np.int32]
    following: NDArray[np.int32]

    @classmethod
    def build(cls, thread: IntArray, sequence: IntArray, at: IntArray, key: IntArray) -> Neighbours:
        """Order each thread by sequence, then moment, then writing; shapes (rows,)."""
        previous = np.full(len(thread), -1, np.int32)
        following = np.full(len(thread), -1, np.int32)
        order = np.lexsort((key, at, sequence, thread))
        left, right = order[:-1], order[1:]
        adjacent = (thread[left] == thread[right]) & (thread[left] != NO_THREAD)
        previous[right[adjacent]] = left[adjacent]
        following[left[adjacent]] = right[adjacent]
        return cls(previous, following)

    def extended(
        self, thread: IntArray, sequence: IntArray, at: IntArray, key: IntArray
    ) -> Neighbours:
        """Order all rows, of which those after the present ones are new; shapes (rows,).

        Equals `build`, but orders only the threads that got a row.
        """
        touched = np.unique(thread[len(self.previous) :])
        rows = np.flatnonzero(np.isin(thread, touched[touched != NO_THREAD]))
        among = Neighbours.build(thread[rows], sequence[rows], at[rows], key[rows])
        return Neighbours(
            _lengthen(self.previous, among.previous, rows, len(thread)),
            _lengthen(self.following, among.following, rows, len(thread)),
        )

    def shares(self, scores: ScoreArray, rows: IntArray) -> ScoreArray:
        """Return these rows' scores with the shares of their neighbours', two to each side.

        Args:
            scores: Of every row, shape (rows of the scope,).
            rows: Whose shares are wanted, shape (n,).
        """
        shares = scores[rows]
        for step in (self.following, self.previous):
            first = _step(step, rows)
            shares += np.float32(FIRST_NEIGHBOUR_SHARE) * _or_nothing(scores, first)
            second = _step(step, first)
            shares += np.float32(SECOND_NEIGHBOUR_SHARE) * _or_nothing(scores, second)
        return shares

    def reached(self, rows: IntArray) -> IntArray:
        """Return these rows and all to which they lend a share, ascending and distinct."""
        marked = np.zeros(len(self.previous), bool)
        marked[rows] = True
        for step in (self.previous, self.following):
            lent = rows
            for _ in range(2):
                lent = _step(step, lent)
                lent = lent[lent >= 0]
                marked[lent] = True
        return np.flatnonzero(marked)


def _lengthen(
    step: NDArray[np.int32], among: NDArray[np.int32], rows: IntArray, count: int
) -> NDArray[np.int32]:
    """Lengthen a step to `count` rows; `among` is the new step of `rows`, numbered among them."""
    longer = np.full(count, -1, np.int32)
    longer[: len(step)] = step
    longer[rows] = np.where(among >= 0, rows[among], -1)
    return longer


def _step(step: NDArray[np.int32], rows: IntArray) -> IntArray:
    """Where one step leads from each row, -1 where it ends."""
    if len(step) == 0:
        return rows
    return np.where(rows >= 0, step[rows], -1).astype(np.int64)


def _or_nothing(scores: ScoreArray, rows: IntArray) -> ScoreArray:
    return np.where(rows >= 0, scores[rows], np.float32(0)).astype(np.float32, copy=False)


# What ranking needs of one scope, held in memory: immutable, made anew when the store moves on.

RecordReader = ScopeRecords | RecordCache
_KEPT_CONDITIONS = 16


@dataclass(frozen=True, slots=True)
class ScopeSnapshot:
    """The current memories of one scope at one version of the store.

    Rows are numbered 0 … len-1 in the order of their keys.

    Attributes:
        version: The store's version that this was read at.
        columns: The ranking columns, by row.
        lexical: BM25 over these rows alone.
        neighbours: Previous and next row in the same session.
        dense: Vectors of these rows.
        pool_names, pool_codes: The pools of the scope, and the number of each row's among them.
        pool_rows: The rows of each pool, ascending.
        turn_share: Share of the rows that are turns of a conversation, in [0, 1]; 0 if empty.
        records: Reads these memories whole, by key.
        identity: What the store was made with, whose model the vectors are of.
        has_vectors: Whether that model is at hand; otherwise every vector is a zero.
    """

    version: int
    columns: ScopeColumns
    lexical: LexicalIndex
    neighbours: Neighbours
    dense: DenseArm
    pool_names: NDArray[np.str_]
    pool_codes: NDArray[np.int16]
    pool_rows: tuple[IntArray, ...]
    turn_share: float
    records: RecordReader
    identity: StoreIdentity
    has_vectors: bool
    _fulfilling: dict[str, NDArray[np.bool_]] = field(init=False, repr=False, default_factory=dict)

    def __len__(self) -> int:
        return len(self.columns.key)

    def fulfil(self, condition: Filter, find: Callable[[], IntArray]) -> NDArray[np.bool_]:
        """Return which rows fulfil a condition; `find`, which gives keys, is asked for it once."""
        asked = repr(condition)  # as a key 1 and True would be the same condition
        rows = self._fulfilling.get(asked)
        if rows is None:
            rows = np.isin(self.columns.key, find())
            if len(self._fulfilling) >= _KEPT_CONDITIONS:
                self._fulfilling.clear()
            self._fulfilling[asked] = rows
        return rows

    def rows_of(self, keys: IntArray) -> IntArray:
        """Return the row of each key; -1 for one that is not among them."""
        return look_up(self.columns.key, np.arange(len(self)), keys)

    def alive(self, now: int) -> NDArray[np.bool_]:
        """Which rows have not expired at `now` (microseconds since 1970)."""
        return np.asarray(self.columns.expires_at > now)


def join_columns(earlier: ScopeColumns, later: ScopeColumns) -> ScopeColumns:
    """Return the rows of both, in order."""
    return ScopeColumns(
        **{
            name: np.concatenate([getattr(earlier, name), getattr(later, name)])
            for name in ScopeColumns.__slots__
        }
    )


def select_rows(columns: ScopeColumns, rows: NDArray[np.bool_]) -> ScopeColumns:
    """Only the marked rows."""
    terms = columns.terms[np.repeat(rows, columns.term_counts)]
    chosen = {
        name: getattr(columns, name)[rows] for name in ScopeColumns.__slots__ if name != "terms"
    }
    return ScopeColumns(terms=terms, **chosen)


# How much memory the snapshots of all scopes together may take.

LEAST_BYTES = 384 * 2**20
_SHARE = 1 / 8
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def snapshot_budget(*, limit_file: Path = _CGROUP_LIMIT) -> int:
    """Return an eighth of the memory that this process may use, in bytes, at least `LEAST_BYTES`.

    A scope whose snapshot was dropped is read from disk again, which takes a hundred times as long
    as a search; so a machine with much memory keeps more of them.

    Args:
        limit_file: Where Linux tells a container's limit.
    """
    return max(LEAST_BYTES, int(min(_physical_bytes(), _container_bytes(limit_file)) * _SHARE))


def _physical_bytes() -> float:
    if not hasattr(os, "sysconf"):  # Windows
        return 0.0
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _container_bytes(limit_file: Path) -> float:
    try:
        return float(limit_file.read_text())
    except (OSError, ValueError):  # no such file, or "max": no limit
        return float("inf")


# Snapshots of the scopes in use: read when needed, brought up to date, dropped when large.

_MOST_BLOCKS = 32
_RECORD_BYTES = 512
"""About what a whole memory of a turn takes."""

LEAST_KEPT = 5_000
"""Smaller scopes are read anew in less time than a search takes."""
_OUTGROWN = 1.25
"""So many times as many memories, or as few, as were kept are kept anew."""
_NO_KEY = -1
_COMPARED = 8
"""Memories of what was kept that are compared with the store where its commit is gone."""

_log = logging.getLogger("ekphory")

_Parts = tuple[int, ScopeColumns, LexicalIndex, Neighbours]
"""Version, columns, lexical index and neighbours of a snapshot to be."""


class Snapshots:
    """Holds the snapshot of each scope in use at the store's newest version.

    Scopes are told apart by their predicate alone, so one scope's snapshot can never serve another.

    Attributes:
        store: What is read.
    """

    def __init__(
        self,
        store: Store,
        embedders: Mapping[EmbedderIdentity, EmbeddingModel] | None = None,
        *,
        kept: KeptArrays | None = None,
    ) -> None:
        """Take a store.

        Args:
            store: What is read.
            embedders: The models at hand; None where it does not matter which.
            kept: Where snapshots of large scopes are kept for the next process; None for nowhere.
        """
        self.store = store
        self._embedders = embedders
        self._kept = kept
        self._kept_rows: dict[Filter, int] = {}
        self._keeping: list[threading.Thread] = []
        self._records = RecordCache(store)
        self._sizes: dict[Filter, int] = {}
        self._budget = snapshot_budget()
        self._held: OrderedDict[Filter, ScopeSnapshot] = OrderedDict()
        self._locks: dict[Filter, threading.Lock] = {}
        self._guard = threading.Lock()

    def of(self, scope: Filter) -> ScopeSnapshot:
        """Return the snapshot of the memories that `scope` lets through, up to date."""
        with self._guard:
            lock = self._locks.setdefault(scope, threading.Lock())
        with lock:
            while True:
                # Else they were replaced meanwhile.
                with suppress(VectorsReplaced):
                    return self._newest(scope)

    def drop_all_but(self, living: IntArray) -> None:
        """Hold no text of memories whose keys are not among these, whoever asks for their scope."""
        with self._guard:
            snapshots = list(self._held.values())
        self._records.drop_all_but(living)
        # A purge removed what was kept on disk too.
        self._kept_rows.clear()
        for snapshot in snapshots:
            snapshot.records.drop(np.setdiff1d(snapshot.columns.key, living))

    def _newest(self, scope: Filter) -> ScopeSnapshot:
        version, identity = self.store.version(), self.store.identity
        held = self._held.get(scope)
        if held is not None and (held.identity, held.has_vectors) != (identity, self._has_model):
            held = None
            with self._guard:
                self._held.pop(scope, None)
        if held is None:
            held = self._recall(scope, version) or self._read(scope, version)
        if held.version != version:
            held = self._renew(scope, held)
        if self.store.identity != identity:
            raise VectorsReplaced("The store's vectors were replaced. Read them anew.")
        self._keep(scope, held)
        self._keep_on_disk_soon(scope, held)
        return held

    def close(self) -> None:
        """Wait until what is being kept on disk is there."""
        for thread in self._keeping:
            thread.join()

    def _recall(self, scope: Filter, version: int) -> ScopeSnapshot | None:
        """Return what was kept of a scope on disk; None where there is nothing to be trusted."""
        if self._kept is None or not self._has_model:
            return None
        found = self._kept.read(self._subject(scope), newest=version)
        if found is None:
            return None
        arrays = found.arrays
        columns = ScopeColumns(**_unprefixed("columns", arrays))
        if not found.is_proven and not self._holds_some_of(columns):
            return None
        self._kept_rows[scope] = len(columns.key)
        lexical = LexicalIndex.of(Postings(**_unprefixed("postings", arrays)), columns.term_counts)
        parts = found.version, columns, lexical, Neighbours(**_unprefixed("neighbours", arrays))
        records = self._record_reader(scope, len(columns.key))
        if "vectors" not in arrays:
            return self._assemble(scope, records, parts)
        bound, owners = None, arrays["owners"]
        rows = self._bound_rows(columns)
        if rows is not None:
            bound = LateBoundWindows(rows, owners, arrays["lengths"])
        discounts = length_discounts(_are_turns(columns))
        dense = ResidentVectors((arrays["vectors"],), owners, discounts, bound)
        return self._snapshot(parts, dense, records)

    def _holds_some_of(self, columns: ScopeColumns) -> bool:
        """Whether the store holds memories with these keys, and none that happened otherwise."""
        places = np.unique(np.linspace(0, len(columns.key) - 1, _COMPARED).astype(np.int64))
        records = self.store.fetch(columns.key[places].tolist())
        found = [place for place in places if int(columns.key[place]) in records]
        return bool(found) and all(
            to_microseconds(records[int(columns.key[place])].at) == columns.at[place]
            for place in found
        )

    def _subject(self, scope: Filter) -> str:
        return f"{self.store.identity!r}: {to_lance_sql(scope)}"

    def _keep_on_disk_soon(self, scope: Filter, snapshot: ScopeSnapshot) -> None:
        """Keep a large scope on disk, unless nearly the same is there."""
        rows, kept = len(snapshot), self._kept_rows.get(scope, 0)
        is_large = self._kept is not None and rows >= LEAST_KEPT and snapshot.has_vectors
        if is_large and not kept / _OUTGROWN <= rows <= kept * _OUTGROWN:
            self._kept_rows[scope] = rows
            thread = threading.Thread(
                target=self._keep_on_disk, args=(scope,), name="ekphory-snapshots", daemon=True
            )
            self._keeping = [each for each in self._keeping if each.is_alive()] + [thread]
            thread.start()

    def _keep_on_disk(self, scope: Filter) -> None:
        if self._kept is None:
            return
        try:
            snapshot = self.of(scope)
            is_kept = self._kept.add(
                self._subject(scope),
                _to_arrays(snapshot),
                version=snapshot.version,
                is_newest=lambda version: self.store.version() == version,
            )
        except StoreError as error:
            # Only the next process's first search is slower by it.
            _log.info("nothing is kept of a large scope: %s", error)
        else:
            if not is_kept:
                self._kept_rows.pop(scope, None)

    def _read(self, scope: Filter, version: int) -> ScopeSnapshot:
        whole = self.store.scan_whole(scope, room=self._budget // 4)
        if whole is not None:
            parts = _build(version, whole.columns)
            rows = len(whole.columns.key)
            held = ScopeRecords(self.store, scope, self._records, rows=rows, loaded=whole.records)
            return self._assemble(scope, held, parts, lambda: whole.vectors)
        columns = self.store.scan(scope)
        records = self._record_reader(scope, len(columns.key))
        return self._assemble(scope, records, _build(version, columns))

    def _record_reader(self, scope: Filter, rows: int) -> RecordReader:
        has_room = rows * _RECORD_BYTES <= self._budget // 4
        if not has_room:
            return self._records
        return ScopeRecords(self.store, scope, self._records, rows=rows)

    def _renew(self, scope: Filter, held: ScopeSnapshot) -> ScopeSnapshot:
        growth = self.store.growth_since(held.version)
        if growth is not None:
            fresh = current_within(growth.memories, scope)
            if isinstance(held.records, ScopeRecords):
                held.records.note(fresh)
            dimension = self.store.identity.embedder.dimension
            read = partial(vectors_of, fresh, dimension=dimension)
            return self._extend(scope, held, columns_of(fresh), growth.version, read)
        version = self.store.version()
        last = int(held.columns.key[-1]) if len(held) else 0
        added = self.store.scan(scope, after_key=last)
        if len(added.key) and isinstance(held.records, ScopeRecords):
            held.records.note_newer(last)
        where = And((scope, CURRENT))
        has_grown = self.store.count(where) == len(held) + len(added.key)
        living = np.ones(len(held), bool)
        if not has_grown or self.store.version() != version:
            present = self.store.keys(where)
            # What came after the scan is left for the next version.
            present = present[present <= (added.key[-1] if len(added.key) else last)]
            living = np.isin(held.columns.key, present)
            held.records.drop(held.columns.key[~living])
            if int(living.sum()) + len(added.key) != len(present):
                # Another writer came between these reads, or rows came back: begin anew.
                return self._read(scope, version)
        if living.all():
            read = partial(self._read_vectors, scope, added, after_key=last)
            return self._extend(scope, held, added, version, read)
        columns = join_columns(select_rows(held.columns, living), added)
        return self._assemble(scope, held.records, _build(version, columns))

    def _extend(
        self,
        scope: Filter,
        held: ScopeSnapshot,
        added: ScopeColumns,
        version: int,
        vectors: Callable[[], KeyedVectors],
    ) -> ScopeSnapshot:
        if len(added.key) == 0:
            return replace(held, version=version)
        columns = join_columns(held.columns, added)
        parts = _grow(held, version, columns, added)
        if not isinstance(held.dense, ResidentVectors) or len(columns.key) > RESIDENT_ROWS:
            return self._assemble(scope, held.records, parts)
        found = self._resident(columns, vectors() if self._has_model else _zeros(added))
        bound = held.dense.bound and found.bound and held.dense.bound.followed_by(found.bound)
        blocks = _join_blocks((*held.dense.blocks, *found.blocks))
        owners = np.concatenate([held.dense.owners, found.owners])
        dense = ResidentVectors(blocks, owners, found.discounts, bound)
        return self._snapshot(parts, dense, held.records)

    def _assemble(
        self,
        scope: Filter,
        records: RecordReader,
        parts: _Parts,
        vectors: Callable[[], KeyedVectors] | None = None,
    ) -> ScopeSnapshot:
        columns = parts[1]
        read = vectors or (lambda: self._read_vectors(scope, columns))
        dense: DenseArm
        if not self._has_model:
            dense = _resident(columns, _zeros(columns))
        elif len(columns.key) <= RESIDENT_ROWS:
            dense = self._resident(columns, read())
        else:
            dense = IndexedVectors(
                columns.key,
                lambda vector, limit: self.store.nearest(scope, vector, limit=limit),
                self._vectors_of(scope),
                length_discounts(_are_turns(columns)),
                self._bound_rows(columns),
            )
        return self._snapshot(parts, dense, records)

    def _read_vectors(
        self, scope: Filter, columns: ScopeColumns, *, after_key: int = 0
    ) -> KeyedVectors:
        """Read the vectors of these rows, those that a writer changed since their scan too.

        What was deleted since then has a vector of zeros.
        """
        found = self.store.scan_vectors(scope, after_key=after_key)
        places = np.searchsorted(found.keys, columns.key)
        gone = columns.key[np.append(found.keys, _NO_KEY)[places] != columns.key]
        if not len(gone):
            return found
        past = self.store.vectors_of(gone.tolist())
        deleted = np.setdiff1d(gone, past.keys)
        keys = np.concatenate([found.keys, past.keys, deleted])
        zeros = np.zeros((len(deleted), found.vectors.shape[1]), np.float32)
        order = np.argsort(keys, kind="stable")
        vectors = np.concatenate([found.vectors, past.vectors, zeros])
        return KeyedVectors(keys[order], vectors[order])

    @property
    def _has_model(self) -> bool:
        return self._embedders is None or self.store.identity.embedder in self._embedders

    def _resident(self, columns: ScopeColumns, found: KeyedVectors) -> ResidentVectors:
        resident = _resident(columns, found)
        rows = self._bound_rows(columns)
        if rows is None:
            return resident
        bound = LateBoundWindows.of(rows, resident.owners, resident.blocks[0])
        return replace(resident, bound=bound)

    def _bound_rows(self, columns: ScopeColumns) -> LateBoundRows | None:
        model = (self._embedders or {}).get(self.store.identity.embedder)
        parts = None if model is None else find_late_bound(model)
        return None if parts is None else LateBoundRows(parts, columns.at, type_codes(columns.type))

    def _vectors_of(self, scope: Filter) -> ScopeVectors:
        held = self._held.get(scope)
        if held is not None and isinstance(held.dense, IndexedVectors):
            return held.dense.vectors
        return ScopeVectors(self.store, scope, room=self._budget // 2)

    def _snapshot(self, parts: _Parts, dense: DenseArm, records: RecordReader) -> ScopeSnapshot:
        columns = parts[1]
        # A few names, which sorting a hundred thousand of them would not profit from.
        names = np.array(sorted(set(columns.pool.tolist())), np.str_)
        codes = np.searchsorted(names, columns.pool).astype(np.int16)
        pools = names, codes, tuple(np.flatnonzero(codes == pool) for pool in range(len(names)))
        turns = float(_are_turns(columns).mean()) if len(columns.key) else 0.0
        read_as = self.store.identity, self._has_model
        return ScopeSnapshot(*parts, dense, *pools, turns, records, *read_as)

    def _keep(self, scope: Filter, snapshot: ScopeSnapshot) -> None:
        with self._guard:
            self._held[scope] = snapshot
            self._held.move_to_end(scope)
            self._sizes[scope] = _count_bytes(snapshot)
            while len(self._held) > 1 and sum(self._sizes.values()) > self._budget:
                dropped, _ = self._held.popitem(last=False)
                self._locks.pop(dropped, None)
                self._sizes.pop(dropped, None)


def _are_turns(columns: ScopeColumns) -> NDArray[np.bool_]:
    """Return which memories are turns, shape (rows,).

    What stands in a session or another sequence is one, but for documents in the pools for
    reference.
    """
    return np.asarray((columns.thread != NO_THREAD) & ~np.isin(columns.pool, REFERENCE_POOLS))


def _to_arrays(snapshot: ScopeSnapshot) -> dict[str, Sequence[Array]]:
    """Return what `_recall` makes a snapshot of, each array in parts."""
    lexical, dense = snapshot.lexical, snapshot.dense
    if lexical.base_rows < len(snapshot):
        lexical = LexicalIndex.build(snapshot.columns.terms, snapshot.columns.term_counts)
    arrays: dict[str, Sequence[Array]] = {
        f"{group}.{name}": (getattr(holder, name),)
        for group, holder in (
            ("columns", snapshot.columns),
            ("postings", lexical.base),
            ("neighbours", snapshot.neighbours),
        )
        for name in type(holder).__slots__
    }
    if isinstance(dense, ResidentVectors):
        arrays |= {"vectors": dense.blocks, "owners": (dense.owners,)}
        if dense.bound is not None:
            arrays["lengths"] = (dense.bound.lengths,)
    return arrays


def _unprefixed(group: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays of one group by their names within it."""
    named = ((name.partition("."), array) for name, array in arrays.items())
    return {name: array for (of, _, name), array in named if of == group}


def _build(version: int, columns: ScopeColumns) -> _Parts:
    lexical = LexicalIndex.build(columns.terms, columns.term_counts)
    neighbours = Neighbours.build(columns.thread, columns.sequence, columns.at, columns.key)
    return version, columns, lexical, neighbours


def _grow(held: ScopeSnapshot, version: int, columns: ScopeColumns, added: ScopeColumns) -> _Parts:
    lexical = held.lexical.extended(added.terms, added.term_counts)
    neighbours = held.neighbours.extended(columns.thread, columns.sequence, columns.at, columns.key)
    return version, columns, lexical, neighbours


def _zeros(columns: ScopeColumns) -> KeyedVectors:
    """Return what stands for vectors that no query can be compared with."""
    return KeyedVectors(columns.key, np.zeros((len(columns.key), 1), np.float32))


def _resident(columns: ScopeColumns, found: KeyedVectors) -> ResidentVectors:
    row_keys, discounts = columns.key, length_discounts(_are_turns(columns))
    if len(row_keys) == 0:
        return ResidentVectors((found.vectors[:0],), np.empty(0, np.int32), discounts)
    places = np.minimum(np.searchsorted(row_keys, found.keys), len(row_keys) - 1)
    known = row_keys[places] == found.keys
    # A writer may have come between the two reads; its rows are left for the next version.
    vectors = found.vectors if known.all() else found.vectors[known]
    return ResidentVectors((vectors,), places[known].astype(np.int32), discounts)


def _join_blocks(blocks: tuple[NDArray[np.float32], ...]) -> tuple[NDArray[np.float32], ...]:
    """Join the blocks after the first when there are many."""
    if len(blocks) <= _MOST_BLOCKS:
        return blocks
    return blocks[0], np.concatenate(blocks[1:])


def _count_bytes(snapshot: ScopeSnapshot) -> int:
    columns: int = sum(getattr(snapshot.columns, name).nbytes for name in ScopeColumns.__slots__)
    dense = snapshot.dense
    if isinstance(dense, ResidentVectors):
        vectors = sum(block.nbytes for block in dense.blocks)
        vectors += 0 if dense.bound is None else dense.bound.lengths.nbytes
    else:
        vectors = dense.vectors.nbytes
    records = snapshot.records.nbytes if isinstance(snapshot.records, ScopeRecords) else 0
    return columns * 2 + vectors + records
