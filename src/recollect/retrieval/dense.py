"""The dense arm: cosine of the query with every memory, exact in memory or through the index."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.models.embedder import FloatMatrix
from recollect.store.store import KeyedScores, KeyedVectors

IntArray = NDArray[np.int64]
ScoreArray = NDArray[np.float32]

LATER_WINDOW_MARGIN = np.float32(0.05)
_PIECE = 16_384
"""Rows that are multiplied at a time."""
FEW_VISIBLE = 4000
"""Up to so many rows that a filter leaves are scored exactly, by reading their vectors."""
_UNSCORED = np.float32(-np.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows a search wants scored, whatever other rows are asked for later.

    Attributes:
        nearest: At least so many of the best visible rows, if there are so many.
        visible: Which rows may be returned at all, shape (rows,).
    """

    nearest: int
    visible: NDArray[np.bool_]


class DenseSearch(Protocol):
    """A search that has begun."""

    def scores(self, also: IntArray) -> tuple[IntArray, ScoreArray]:
        """Give what was wanted, and `also` these rows, which are distinct.

        Returns:
            Rows, ascending, and the exact score of each; there may be more than was wanted.
        """
        ...


class DenseArm(Protocol):
    """Scores rows of one scope against a query vector."""

    def begin(self, vector: ScoreArray, wanted: Wanted) -> DenseSearch:
        """Begin to look for what is wanted, by the query's vector of shape (dimension,)."""
        ...

    def first_vectors(self, rows: IntArray) -> FloatMatrix:
        """Give the vector of each row's first window, shape (rows, dimension)."""
        ...


@dataclass(frozen=True, slots=True)
class ResidentVectors:
    """All vectors of the scope in memory; a memory with several windows counts by its best.

    Attributes:
        blocks: Each of shape (some windows, dimension), one after another; appending a block
            copies none of the others.
        owners: Row of the memory that each window belongs to, ascending.
        rows: Number of memories.
    """

    blocks: tuple[NDArray[np.float32], ...]
    owners: NDArray[np.int32]
    rows: int

    def begin(self, vector: ScoreArray, wanted: Wanted) -> DenseSearch:
        """Score every row, which costs less than choosing some."""
        del wanted
        products = _products(self.blocks, vector)
        if len(products) != self.rows:
            products = best_window(products, self.owners, self.rows)
        return _EveryRow(products)

    def first_vectors(self, rows: IntArray) -> FloatMatrix:
        """Copy them out of the blocks."""
        windows = np.searchsorted(self.owners, rows)
        starts = np.cumsum([0, *(len(block) for block in self.blocks)])
        vectors = np.empty((len(rows), self.blocks[0].shape[1]), np.float32)
        for block, start in zip(self.blocks, starts[:-1], strict=True):
            inside = (windows >= start) & (windows < start + len(block))
            vectors[inside] = block[windows[inside] - start]
        return vectors


@dataclass(frozen=True, slots=True)
class IndexedVectors:
    """Vectors that stay in the store, found through its index and rescored exactly.

    Attributes:
        keys: Key of each row, ascending; a key that is not among them is out of the scope's view.
        search: Nearest rows within the scope, by the store.
        read: Vectors of some keys, by the store.
    """

    keys: IntArray
    search: Callable[[ScoreArray, int], KeyedScores]
    read: Callable[[IntArray], KeyedVectors]

    def begin(self, vector: ScoreArray, wanted: Wanted) -> DenseSearch:
        """Search the index in a thread of its own; a few visible rows are read instead."""
        visible = np.flatnonzero(wanted.visible)
        if len(visible) <= FEW_VISIBLE:
            return _FewRows(visible, lambda rows: self._exact(vector, rows))
        beside = ThreadPoolExecutor(max_workers=1)
        found = beside.submit(self._nearest, vector, wanted, len(visible))
        beside.shutdown(wait=False)
        return _FoundRows(found, lambda rows: self._exact(vector, rows))

    def first_vectors(self, rows: IntArray) -> FloatMatrix:
        """Read them from the store."""
        wanted = self.keys[rows]
        stored = self.read(np.unique(wanted))
        order = np.argsort(stored.keys, kind="stable")
        first = order[np.searchsorted(stored.keys, wanted, sorter=order)]
        return np.asarray(stored.vectors[first], np.float32)

    def _nearest(
        self, vector: ScoreArray, wanted: Wanted, visible: int
    ) -> tuple[KeyedScores, IntArray]:
        """Search until enough of what is found is visible, or everything was searched."""
        # What a filter hides takes places among the nearest, so more of them are asked for.
        nearest = math.ceil(wanted.nearest * len(self.keys) / visible)
        while True:
            found = self.search(vector, nearest)
            rows = self._rows_of(found.keys)
            seen = np.unique(rows[(rows >= 0) & wanted.visible[rows]])
            enough = len(seen) >= min(wanted.nearest, visible)
            if enough or len(found.keys) < nearest:
                return found, rows
            nearest *= 4

    def _exact(self, vector: ScoreArray, rows: IntArray) -> ScoreArray:
        wanted = self.keys[rows]
        stored = self.read(wanted)
        order = np.argsort(wanted)
        places = order[np.searchsorted(wanted, stored.keys, sorter=order)]
        return best_by_owner(np.asarray(stored.vectors @ vector, np.float32), places, len(rows))

    def _rows_of(self, keys: IntArray) -> IntArray:
        if len(self.keys) == 0:
            return np.full(len(keys), -1, np.int64)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, -1)


@dataclass(frozen=True, slots=True)
class _EveryRow:
    products: ScoreArray

    def scores(self, also: IntArray) -> tuple[IntArray, ScoreArray]:
        del also
        return np.arange(len(self.products), dtype=np.int64), self.products


@dataclass(frozen=True, slots=True)
class _FewRows:
    visible: IntArray
    exact: Callable[[IntArray], ScoreArray]

    def scores(self, also: IntArray) -> tuple[IntArray, ScoreArray]:
        rows = np.union1d(self.visible, also)
        return rows, self.exact(rows)


@dataclass(frozen=True, slots=True)
class _FoundRows:
    nearest: Future[tuple[KeyedScores, IntArray]]
    exact: Callable[[IntArray], ScoreArray]

    def scores(self, also: IntArray) -> tuple[IntArray, ScoreArray]:
        """Read the vectors of the other rows while the index is searched."""
        exact = self.exact(also)
        found, found_rows = self.nearest.result()
        known = found_rows >= 0
        owners = np.concatenate([also, found_rows[known]])
        distinct, places = np.unique(owners, return_inverse=True)
        return distinct, best_by_owner(
            np.concatenate([exact, found.scores[known]]), places, len(distinct)
        )


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


def best_window(scores: ScoreArray, owners: NDArray[np.integer], rows: int) -> ScoreArray:
    """Score each row by its best window, shape (rows,); `owners` ascending, windows in order.

    A later window must beat the first by `LATER_WINDOW_MARGIN`: the more windows a memory has,
    the more often one of them is near by chance.
    """
    later = np.append(False, owners[1:] == owners[:-1])
    margin = LATER_WINDOW_MARGIN * later.astype(np.float32)
    return best_by_owner(np.asarray(scores - margin, np.float32), owners, rows)


def best_by_owner(scores: ScoreArray, owners: NDArray[np.integer], rows: int) -> ScoreArray:
    """Give the largest score of each owner, shape (rows,); -inf for one that has none."""
    best = np.full(rows, _UNSCORED, np.float32)
    np.maximum.at(best, owners, scores)
    return best
