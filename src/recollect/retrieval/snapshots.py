"""Snapshots of the scopes in use: read when needed, brought up to date, dropped when large."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace

import numpy as np

from recollect.filters.tree import And, Filter
from recollect.retrieval.dense import IndexedVectors, ResidentVectors
from recollect.retrieval.lexical import LexicalIndex
from recollect.retrieval.neighbours import Neighbours
from recollect.retrieval.snapshot import ScopeSnapshot, joined, kept
from recollect.store.store import CURRENT, ScopeColumns, Store

RESIDENT_ROWS = 20_000
"""A scope of up to this many memories is searched exactly, with its vectors in memory."""
_SNAPSHOT_BYTES = 384 * 2**20


class Snapshots:
    """Gives the snapshot of a scope at the store's newest version.

    Scopes are told apart by their predicate alone, so one scope's snapshot can never serve another.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
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
        lexical = LexicalIndex.build(columns.terms, columns.term_counts)
        return self._assembled(scope, version, columns, lexical)

    def _renewed(self, scope: Filter, held: ScopeSnapshot) -> ScopeSnapshot:
        version = self._store.version()
        last = int(held.columns.key[-1]) if len(held) else 0
        added = self._store.scan(scope, after_key=last)
        if self._store.count(And((scope, CURRENT))) == len(held) + len(added.key):
            return self._extended(scope, held, added, version)
        present = self._store.keys(And((scope, CURRENT)))
        living = np.isin(held.columns.key, present)
        if int(living.sum()) + len(added.key) != len(present):
            # Another writer came between these reads, or rows came back: begin anew.
            return self._read(scope, version)
        columns = joined(kept(held.columns, living), added)
        lexical = LexicalIndex.build(columns.terms, columns.term_counts)
        return self._assembled(scope, version, columns, lexical)

    def _extended(
        self, scope: Filter, held: ScopeSnapshot, added: ScopeColumns, version: int
    ) -> ScopeSnapshot:
        if len(added.key) == 0:
            return replace(held, version=version)
        columns = joined(held.columns, added)
        lexical = held.lexical.extended(added.terms, added.term_counts)
        if not isinstance(held.dense, ResidentVectors) or len(columns.key) > RESIDENT_ROWS:
            return self._assembled(scope, version, columns, lexical)
        last = int(held.columns.key[-1]) if len(held) else 0
        found = self._store.scan_vectors(scope, after_key=last)
        dense = _resident(
            columns.key,
            np.concatenate([held.columns.key[held.dense.owners], found.keys]),
            np.concatenate([held.dense.vectors, found.vectors]),
        )
        return ScopeSnapshot(version, columns, lexical, _neighbours(columns), dense)

    def _assembled(
        self, scope: Filter, version: int, columns: ScopeColumns, lexical: LexicalIndex
    ) -> ScopeSnapshot:
        dense: ResidentVectors | IndexedVectors
        if len(columns.key) <= RESIDENT_ROWS:
            found = self._store.scan_vectors(scope)
            dense = _resident(columns.key, found.keys, found.vectors)
        else:
            dense = IndexedVectors(
                columns.key,
                lambda vector, limit: self._store.nearest(scope, vector, limit=limit),
                lambda keys: self._store.vectors_of(keys.tolist()),
            )
        return ScopeSnapshot(version, columns, lexical, _neighbours(columns), dense)

    def _keep(self, scope: Filter, snapshot: ScopeSnapshot) -> None:
        with self._guard:
            self._held[scope] = snapshot
            self._held.move_to_end(scope)
            while len(self._held) > 1 and sum(map(_bytes, self._held.values())) > _SNAPSHOT_BYTES:
                dropped, _ = self._held.popitem(last=False)
                self._locks.pop(dropped, None)


def _neighbours(columns: ScopeColumns) -> Neighbours:
    return Neighbours.build(columns.thread, columns.sequence, columns.at, columns.key)


def _resident(
    row_keys: np.ndarray, vector_keys: np.ndarray, vectors: np.ndarray
) -> ResidentVectors:
    # A writer may have come between the two reads; its rows are left for the next version.
    places = np.minimum(np.searchsorted(row_keys, vector_keys), max(len(row_keys) - 1, 0))
    known = row_keys[places] == vector_keys if len(row_keys) else np.zeros(len(vector_keys), bool)
    return ResidentVectors(
        np.ascontiguousarray(vectors[known]), places[known].astype(np.int32), len(row_keys)
    )


def _bytes(snapshot: ScopeSnapshot) -> int:
    columns: int = sum(getattr(snapshot.columns, name).nbytes for name in ScopeColumns.__slots__)
    dense = snapshot.dense
    vectors = dense.vectors.nbytes if isinstance(dense, ResidentVectors) else 0
    return columns * 2 + vectors
