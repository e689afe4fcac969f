"""Snapshots of the scopes in use: read when needed, brought up to date, dropped when large."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ekphory.filters.tree import And, Filter
from ekphory.models.late_bound import LateBoundParts, type_codes
from ekphory.retrieval.dense import (
    DenseArm,
    IndexedVectors,
    ResidentVectors,
    length_discounts,
)
from ekphory.retrieval.late_bound_rows import LateBoundRows, LateBoundWindows
from ekphory.retrieval.lexical import LexicalIndex
from ekphory.retrieval.neighbours import Neighbours
from ekphory.retrieval.scope_vectors import ScopeVectors
from ekphory.retrieval.snapshot import RecordReader, ScopeSnapshot, joined, kept
from ekphory.retrieval.snapshot_budget import snapshot_budget
from ekphory.store.recent_writes import columns_of, vectors_of
from ekphory.store.record_cache import RecordCache
from ekphory.store.scope_records import ScopeRecords
from ekphory.store.store import CURRENT, RESIDENT_ROWS, KeyedVectors, ScopeColumns, Store

_MOST_BLOCKS = 32
_RECORD_BYTES = 512
"""About what a whole memory of a turn takes."""

_Parts = tuple[int, ScopeColumns, LexicalIndex, Neighbours]
"""Version, columns, lexical index and neighbours of a snapshot to be."""


class Snapshots:
    """Gives the snapshot of a scope at the store's newest version.

    Scopes are told apart by their predicate alone, so one scope's snapshot can never serve another.
    """

    def __init__(self, store: Store, late_bound: LateBoundParts | None = None) -> None:
        self._store = store
        self._late_bound = late_bound
        self._records = RecordCache(store)
        self._sizes: dict[Filter, int] = {}
        self._budget = snapshot_budget()
        self._held: OrderedDict[Filter, ScopeSnapshot] = OrderedDict()
        self._locks: dict[Filter, threading.Lock] = {}
        self._guard = threading.Lock()

    def of(self, scope: Filter) -> ScopeSnapshot:
        """Give the snapshot of the memories that `scope` lets through, up to date."""
        with self._guard:
            lock = self._locks.setdefault(scope, threading.Lock())
        with lock:
            version = self._store.version()
            held = self._held.get(scope)
            if held is None or held.version != version:
                held = self._read(scope, version) if held is None else self._renewed(scope, held)
            self._keep(scope, held)
            return held

    def _read(self, scope: Filter, version: int) -> ScopeSnapshot:
        columns = self._store.scan(scope)
        records: RecordReader = self._records
        if len(columns.key) * _RECORD_BYTES <= self._budget // 4:
            records = ScopeRecords(self._store, scope, self._records)
        return self._assembled(scope, records, _built(version, columns))

    def _renewed(self, scope: Filter, held: ScopeSnapshot) -> ScopeSnapshot:
        growth = self._store.growth_since(held.version)
        if growth is not None:
            fresh = growth.within(scope)
            return self._extended(
                scope,
                held,
                columns_of(fresh),
                growth.version,
                lambda: vectors_of(fresh, dimension=self._store.identity.embedder.dimension),
            )
        version = self._store.version()
        last = int(held.columns.key[-1]) if len(held) else 0
        added = self._store.scan(scope, after_key=last)
        if self._store.count(And((scope, CURRENT))) == len(held) + len(added.key):
            return self._extended(
                scope, held, added, version, lambda: self._store.scan_vectors(scope, after_key=last)
            )
        present = self._store.keys(And((scope, CURRENT)))
        living = np.isin(held.columns.key, present)
        if int(living.sum()) + len(added.key) != len(present):
            # Another writer came between these reads, or rows came back: begin anew.
            return self._read(scope, version)
        columns = joined(kept(held.columns, living), added)
        return self._assembled(scope, held.records, _built(version, columns))

    def _extended(
        self,
        scope: Filter,
        held: ScopeSnapshot,
        added: ScopeColumns,
        version: int,
        vectors: Callable[[], KeyedVectors],
    ) -> ScopeSnapshot:
        if len(added.key) == 0:
            return replace(held, version=version)
        columns = joined(held.columns, added)
        parts = _grown(held, version, columns, added)
        if not isinstance(held.dense, ResidentVectors) or len(columns.key) > RESIDENT_ROWS:
            return self._assembled(scope, held.records, parts)
        found = self._resident(columns, vectors())
        bound = held.dense.bound and found.bound and held.dense.bound.followed_by(found.bound)
        dense = ResidentVectors(
            _few((*held.dense.blocks, *found.blocks)),
            np.concatenate([held.dense.owners, found.owners]),
            found.discounts,
            bound,
        )
        return _snapshot(parts, dense, held.records)

    def _assembled(self, scope: Filter, records: RecordReader, parts: _Parts) -> ScopeSnapshot:
        columns = parts[1]
        dense: ResidentVectors | IndexedVectors
        if len(columns.key) <= RESIDENT_ROWS:
            dense = self._resident(columns, self._store.scan_vectors(scope))
        else:
            dense = IndexedVectors(
                columns.key,
                lambda vector, limit: self._store.nearest(scope, vector, limit=limit),
                self._vectors_of(scope),
                length_discounts(columns.are_turns),
                self._bound_rows(columns),
            )
        return _snapshot(parts, dense, records)

    def _resident(self, columns: ScopeColumns, found: KeyedVectors) -> ResidentVectors:
        resident = _resident(columns, found)
        rows = self._bound_rows(columns)
        if rows is None:
            return resident
        bound = LateBoundWindows.of(rows, resident.owners, resident.blocks[0])
        return replace(resident, bound=bound)

    def _bound_rows(self, columns: ScopeColumns) -> LateBoundRows | None:
        if self._late_bound is None:
            return None
        return LateBoundRows(self._late_bound, columns.at, type_codes(columns.type))

    def _vectors_of(self, scope: Filter) -> ScopeVectors:
        held = self._held.get(scope)
        if held is not None and isinstance(held.dense, IndexedVectors):
            return held.dense.vectors
        return ScopeVectors(self._store, scope, room=self._budget // 2)

    def _keep(self, scope: Filter, snapshot: ScopeSnapshot) -> None:
        with self._guard:
            self._held[scope] = snapshot
            self._held.move_to_end(scope)
            self._sizes[scope] = _bytes(snapshot)
            while len(self._held) > 1 and sum(self._sizes.values()) > self._budget:
                dropped, _ = self._held.popitem(last=False)
                self._locks.pop(dropped, None)
                self._sizes.pop(dropped, None)


def _built(version: int, columns: ScopeColumns) -> _Parts:
    lexical = LexicalIndex.build(columns.terms, columns.term_counts)
    neighbours = Neighbours.build(columns.thread, columns.sequence, columns.at, columns.key)
    return version, columns, lexical, neighbours


def _grown(held: ScopeSnapshot, version: int, columns: ScopeColumns, added: ScopeColumns) -> _Parts:
    lexical = held.lexical.extended(added.terms, added.term_counts)
    neighbours = held.neighbours.extended(columns.thread, columns.sequence, columns.at, columns.key)
    return version, columns, lexical, neighbours


def _snapshot(parts: _Parts, dense: DenseArm, records: RecordReader) -> ScopeSnapshot:
    version, columns, lexical, neighbours = parts
    pool_names, pool_codes = np.unique(columns.pool, return_inverse=True)
    codes = pool_codes.astype(np.int16)
    pool_rows = tuple(np.flatnonzero(codes == pool) for pool in range(len(pool_names)))
    turns = float(columns.are_turns.mean()) if len(columns.key) else 0.0
    return ScopeSnapshot(
        version, columns, lexical, neighbours, dense, pool_names, codes, pool_rows, turns, records
    )


def _resident(columns: ScopeColumns, found: KeyedVectors) -> ResidentVectors:
    row_keys, discounts = columns.key, length_discounts(columns.are_turns)
    if len(row_keys) == 0:
        return ResidentVectors((found.vectors[:0],), np.empty(0, np.int32), discounts)
    places = np.minimum(np.searchsorted(row_keys, found.keys), len(row_keys) - 1)
    known = row_keys[places] == found.keys
    # A writer may have come between the two reads; its rows are left for the next version.
    vectors = found.vectors if known.all() else found.vectors[known]
    return ResidentVectors((vectors,), places[known].astype(np.int32), discounts)


def _few(blocks: tuple[NDArray[np.float32], ...]) -> tuple[NDArray[np.float32], ...]:
    """Join the blocks after the first when there are many."""
    if len(blocks) <= _MOST_BLOCKS:
        return blocks
    return blocks[0], np.concatenate(blocks[1:])


def _bytes(snapshot: ScopeSnapshot) -> int:
    columns: int = sum(getattr(snapshot.columns, name).nbytes for name in ScopeColumns.__slots__)
    dense = snapshot.dense
    if isinstance(dense, ResidentVectors):
        vectors = sum(block.nbytes for block in dense.blocks)
        vectors += 0 if dense.bound is None else dense.bound.lengths.nbytes
    else:
        vectors = dense.vectors.nbytes if isinstance(dense, IndexedVectors) else 0
    records = snapshot.records.nbytes if isinstance(snapshot.records, ScopeRecords) else 0
    return columns * 2 + vectors + records
