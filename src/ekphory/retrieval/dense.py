"""The dense arm: cosine of the query with every memory, exact in memory or by the index."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ekphory.filters.tree import Filter
from ekphory.models.embedder import FloatMatrix
from ekphory.models.late_bound import (
    Codes,
    FloatVector,
    LateBoundParts,
    age_buckets_at,
    late_bound_scores,
)
from ekphory.store.blocks import ScopeBlocks
from ekphory.store.lance_rows import look_up
from ekphory.store.protocol import IntArray, KeyedVectors, ScoreArray, Store

# Vectors of one large scope by key, in half precision: scoring a thousand reads no disk.


class ScopeVectors:
    """Reads vectors of one scope, after its second read out of memory where they have room.

    A product of half precision vectors is off by some 0.0002. What was written after the load
    comes from the store, until that is much.

    Args:
        store: Where they are read.
        scope: The condition on them.
        room: Bytes that they may take in memory.
    """

    def __init__(self, store: Store, scope: Filter, *, room: int) -> None:
        self._store = store
        self._room = room
        self._blocks: ScopeBlocks[KeyedVectors] = ScopeBlocks(
            lambda last: store.scan_vectors(scope, after_key=last, precision=np.float16)
        )

    @property
    def nbytes(self) -> int:
        """Memory that is taken."""
        return self._blocks.nbytes

    @property
    def resident(self) -> bool:
        """Whether reading costs no access to the store, but for what is new."""
        return self._blocks.nbytes > 0

    def prepare(self, windows: int, dimension: int) -> None:
        """Begin to load what is not there yet, if it has room and this is not the first time.

        Args:
            windows: About how many vectors the scope has.
            dimension: Of a vector.
        """
        if windows * dimension * np.float16().nbytes <= self._room:
            self._blocks.prepare(windows)

    def settle(self) -> None:
        """Wait for what is being loaded."""
        self._blocks.settle()

    def read(self, keys: IntArray) -> KeyedVectors:
        """Return the vectors of these keys, the windows of a memory in the order of its text."""
        parts = [_select_windows(block, keys) for block in self._blocks.holding(keys)]
        missing = np.unique(keys)
        for part in parts:
            missing = np.setdiff1d(missing, part.keys)
        if len(missing) or not parts:
            parts.append(self._store.vectors_of(missing.tolist()))
        return KeyedVectors(
            np.concatenate([part.keys for part in parts]),
            np.concatenate([part.vectors for part in parts]),
        )


def _select_windows(block: KeyedVectors, keys: IntArray) -> KeyedVectors:
    """Return the windows of these keys out of a block whose keys ascend."""
    wanted = np.unique(keys)
    starts = np.searchsorted(block.keys, wanted, side="left")
    counts = np.searchsorted(block.keys, wanted, side="right") - starts
    before = np.cumsum(counts) - counts
    places = np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
    return KeyedVectors(block.keys[places], block.vectors[places].astype(np.float32))


# What the rows of a scope need so that their content vectors score for today's age.
#
# A dense arm multiplies the query with content vectors, as it does for any model. For a model that
# binds age and type late, the products then become scores here: exactly those that embedding every
# memory anew at that moment would give (`models/late_bound.py` has the formula).


@dataclass(frozen=True, slots=True)
class LateBoundRows:
    """Age and type of the memories of a scope, by row.

    Attributes:
        parts: The model's vectors of age and type.
        at: When each memory happened, microseconds since 1970, shape (rows,).
        types: Type code of each memory, shape (rows,).
    """

    parts: LateBoundParts
    at: NDArray[np.int64]
    types: Codes

    def scores(
        self, query: FloatVector, content: FloatMatrix, *, owners: Codes, now: int
    ) -> FloatVector:
        """Score windows that an index found and that were read, shape (windows,)."""
        buckets, types = age_buckets_at(self.at[owners], now), self.types[owners]
        # Not `@`: BLAS splits so small a product over threads, and waits for a busy core.
        products = np.asarray(np.einsum("ij,j->i", content, query), np.float32)
        lengths = self.parts.lengths_at(content, buckets=buckets, types=types)
        offsets = self.parts.offsets(query)
        return late_bound_scores(products, offsets, lengths, buckets=buckets, types=types)

    def vectors(self, content: FloatMatrix, *, owners: Codes, now: int) -> FloatMatrix:
        """Return the vectors of length 1 that embedding these memories now would give."""
        buckets = age_buckets_at(self.at[owners], now)
        return self.parts.bound(content, buckets=buckets, types=self.types[owners])


@dataclass(frozen=True, slots=True)
class LateBoundWindows:
    """All windows of a scope whose vectors are held in memory.

    Attributes:
        rows: Age and type of the memories.
        owners: Row of the memory that each window belongs to, ascending; every row owns one.
        lengths: The ten lengths of each window's z, shape (windows, 10).
    """

    rows: LateBoundRows
    owners: NDArray[np.integer]
    lengths: FloatMatrix

    @classmethod
    def of(
        cls, rows: LateBoundRows, owners: NDArray[np.integer], content: FloatMatrix
    ) -> LateBoundWindows:
        """Compute the lengths of windows from their content vectors."""
        return cls(rows, owners, rows.parts.lengths(content, types=rows.types[owners]))

    def followed_by(self, later: LateBoundWindows) -> LateBoundWindows:
        """Return these windows and later ones, whose `rows` are those of the whole scope."""
        return LateBoundWindows(
            later.rows,
            np.concatenate([self.owners, later.owners]),
            np.concatenate([self.lengths, later.lengths]),
        )

    def scores(self, query: FloatVector, products: FloatVector, *, now: int) -> FloatVector:
        """Score all windows, shape (windows,).

        Args:
            query: The query's vector.
            products: q·c of each window.
            now: Microseconds since 1970.
        """
        buckets, types = age_buckets_at(self.rows.at, now), self.rows.types
        if len(self.owners) != len(buckets):
            buckets, types = buckets[self.owners], types[self.owners]
        lengths = self.lengths[np.arange(len(buckets)), buckets]
        offsets = self.rows.parts.offsets(query)
        return late_bound_scores(products, offsets, lengths, buckets=buckets, types=types)


# The dense arm.

LATER_WINDOW_MARGIN = np.float32(0.05)
TURN_LENGTH_DISCOUNT = np.float32(0.1)
DOCUMENT_LENGTH_DISCOUNT = np.float32(0.03)
"""What a memory loses for each natural logarithm of its number of windows (LOG, 21 and 26)."""
_PIECE = 16_384
"""Rows that are multiplied at a time."""
FEW_VISIBLE = 4000
"""Up to so many rows that a filter leaves are scored exactly, by reading their vectors."""
_ESTIMATED = 4
"""The index orders by an estimate, so it is asked for so many times as many rows, which are then
scored exactly; not where that means reading each of them from disk."""
_UNSCORED = np.float32(-np.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows a search wants scored, whatever other rows are asked for later.

    Attributes:
        nearest: At least so many of the best visible rows, if there are so many.
        visible: Which rows may be returned at all, shape (rows,).
        now: The moment that ages are counted from, microseconds since 1970.
    """

    nearest: int
    now: int
    visible: NDArray[np.bool_]


DenseSearch = Callable[[IntArray], tuple[IntArray, ScoreArray]]
"""A search that has begun: gives what was wanted, and these rows besides, which are distinct: rows,
ascending, and the exact score of each; there may be more than was wanted."""


@dataclass(frozen=True, slots=True)
class ResidentVectors:
    """All vectors of the scope in memory; a memory with several windows counts by its best.

    Attributes:
        blocks: Each of shape (some windows, dimension), one after another; appending a block
            copies none of the others.
        owners: Row of the memory that each window belongs to, ascending.
        discounts: What each memory loses for its length, as `length_discounts` gives it.
        bound: Their ages and types, where the model binds these late.
    """

    blocks: tuple[NDArray[np.float32], ...]
    owners: NDArray[np.int32]
    discounts: ScoreArray
    bound: LateBoundWindows | None = None

    def begin(self, vector: ScoreArray, wanted: Wanted) -> DenseSearch:
        """Begin to look for what is wanted: score every row, which costs less than choosing."""
        products = _products(self.blocks, vector)
        if self.bound is not None:
            products = self.bound.scores(vector, products, now=wanted.now)
        if len(products) != len(self.discounts):
            products = best_window(products, self.owners, self.discounts)
        return lambda _: (np.arange(len(products), dtype=np.int64), products)

    def first_vectors(self, rows: IntArray, *, now: int) -> FloatMatrix:
        """Return the vector of each row's first window, with length 1, shape (rows, dimension)."""
        windows = np.searchsorted(self.owners, rows)
        starts = np.cumsum([0, *(len(block) for block in self.blocks)])
        vectors = np.empty((len(rows), self.blocks[0].shape[1]), np.float32)
        for block, start in zip(self.blocks, starts[:-1], strict=True):
            inside = (windows >= start) & (windows < start + len(block))
            vectors[inside] = block[windows[inside] - start]
        if self.bound is None:
            return vectors
        return self.bound.rows.vectors(vectors, owners=rows, now=now)


@dataclass(frozen=True, slots=True)
class IndexedVectors:
    """Rows found through the store's index, then scored exactly by their vectors.

    Attributes:
        keys: Key of each row, ascending; a key that is not among them is out of the scope's view.
        search: Keys of the nearest windows within the scope, by the store.
        vectors: Those of the scope, by key.
        discounts: What each memory loses for its length, as `length_discounts` gives it.
        bound: Ages and types of the rows, where the model binds these late.
    """

    keys: IntArray
    search: Callable[[ScoreArray, int], IntArray]
    vectors: ScopeVectors
    discounts: ScoreArray
    bound: LateBoundRows | None = None

    def begin(self, vector: ScoreArray, wanted: Wanted) -> DenseSearch:
        """Search the index; a few visible rows are scored instead.

        Not in a thread of its own: waiting for the interpreter's lock, while the words are
        scored, takes longer than the search.
        """
        self.vectors.prepare(len(self.keys), len(vector))
        visible = int(np.count_nonzero(wanted.visible))
        if visible <= FEW_VISIBLE:
            found = np.flatnonzero(wanted.visible)
        else:
            found = self._nearest(vector, wanted, visible)

        def score(also: IntArray) -> tuple[IntArray, ScoreArray]:
            rows = np.union1d(found, also)
            return rows, self._exact(vector, rows, wanted.now)

        return score

    def first_vectors(self, rows: IntArray, *, now: int) -> FloatMatrix:
        """Return the same vectors as `ResidentVectors` does, read by their keys.

        What was deleted since the rows were read has a vector of zeros.
        """
        wanted = self.keys[rows]
        stored = self.vectors.read(np.unique(wanted))
        keys, first = np.unique(stored.keys, return_index=True)
        is_there = np.isin(wanted, keys)
        vectors = np.zeros((len(rows), stored.vectors.shape[1]), np.float32)
        vectors[is_there] = stored.vectors[first[np.searchsorted(keys, wanted[is_there])]]
        return vectors if self.bound is None else self.bound.vectors(vectors, owners=rows, now=now)

    def _nearest(self, vector: ScoreArray, wanted: Wanted, visible: int) -> IntArray:
        """Search until enough of what is found is visible, or everything was searched."""
        # What a filter hides takes places among the nearest, so more of them are asked for.
        nearest = math.ceil(wanted.nearest * len(self.keys) / visible)
        if self.vectors.resident:
            nearest *= _ESTIMATED
        while True:
            found = self.search(vector, nearest)
            rows = look_up(self.keys, np.arange(len(self.keys)), found)
            rows = np.unique(rows[rows >= 0])
            seen = int(np.count_nonzero(wanted.visible[rows]))
            if seen >= min(wanted.nearest, visible) or len(found) < nearest:
                return rows
            nearest *= 4

    def _exact(self, vector: ScoreArray, rows: IntArray, now: int) -> ScoreArray:
        """Score rows, which are distinct, by their best windows."""
        wanted = self.keys[rows]
        stored = self.vectors.read(wanted)
        order = np.argsort(wanted)
        places = order[np.searchsorted(wanted, stored.keys, sorter=order)]
        windows = np.argsort(places, kind="stable")
        vectors = np.asarray(stored.vectors, np.float32)
        if self.bound is None:
            products = _product(vectors, vector)
        else:
            products = self.bound.scores(vector, vectors, owners=rows[places], now=now)
        return best_window(products[windows], places[windows], self.discounts[rows])


DenseArm = ResidentVectors | IndexedVectors
"""Scores rows of one scope against a query vector."""


def _products(blocks: Sequence[NDArray[np.float32]], vector: ScoreArray) -> ScoreArray:
    """Multiply every row of the blocks with the vector, those of a large scope on two cores."""
    pieces = [
        block[start : start + _PIECE] for block in blocks for start in range(0, len(block), _PIECE)
    ]
    if len(pieces) < 2:
        return np.concatenate([_product(block, vector) for block in blocks])
    half = len(pieces) // 2
    with ThreadPoolExecutor(max_workers=1) as beside:
        later = beside.submit(lambda: [_product(piece, vector) for piece in pieces[half:]])
        first = [_product(piece, vector) for piece in pieces[:half]]
        return np.concatenate([*first, *later.result()])


def _product(rows: NDArray[np.float32], vector: ScoreArray) -> ScoreArray:
    # Not `@`: BLAS splits so small a product over threads, and waits for a busy core.
    return np.asarray(np.einsum("ij,j->i", rows, vector), np.float32)


def length_discounts(are_turns: NDArray[np.bool_]) -> ScoreArray:
    """Return what each memory loses for each natural logarithm of its number of windows."""
    return np.where(are_turns, TURN_LENGTH_DISCOUNT, DOCUMENT_LENGTH_DISCOUNT)


def best_window(
    scores: ScoreArray, owners: NDArray[np.integer], discounts: ScoreArray
) -> ScoreArray:
    """Score each row by its best window, shape (rows,); `owners` ascending, windows in order.

    The more windows a memory has, the more often one of them is near by chance. So a later window
    must beat the first by `LATER_WINDOW_MARGIN`, and the best counts less by the row's discount
    times the logarithm of their number, as the expected maximum of independent draws grows. A
    long turn, which answers at length what a short one asked, is near by chance more often yet.
    """
    rows = len(discounts)
    later = np.append(False, owners[1:] == owners[:-1])
    margin = LATER_WINDOW_MARGIN * later.astype(np.float32)
    best = best_by_owner(np.asarray(scores - margin, np.float32), owners, rows)
    windows = np.maximum(np.bincount(owners, minlength=rows), 1)
    return np.asarray(best - discounts * np.log(windows), np.float32)


def best_by_owner(scores: ScoreArray, owners: NDArray[np.integer], rows: int) -> ScoreArray:
    """Return the largest score of each owner, shape (rows,); -inf for one that has none."""
    best = np.full(rows, _UNSCORED, np.float32)
    np.maximum.at(best, owners, scores)
    return best
