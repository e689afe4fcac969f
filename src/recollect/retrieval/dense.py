"""The dense arm: cosine of the query with every memory, exact in memory or through the index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.store.store import KeyedScores, KeyedVectors

IntArray = NDArray[np.int64]
ScoreArray = NDArray[np.float32]

_UNSCORED = np.float32(-np.inf)


class DenseArm(Protocol):
    """Scores rows of one scope against a query vector."""

    def nearest(self, vector: ScoreArray, *, limit: int) -> tuple[IntArray, ScoreArray]:
        """Rows that score best and their scores; exact arms give all rows, in row order."""
        ...

    def scores_of(self, vector: ScoreArray, rows: IntArray) -> ScoreArray:
        """Exact scores of some rows, parallel to `rows`."""
        ...


@dataclass(frozen=True, slots=True)
class ResidentVectors:
    """All vectors of the scope in memory; a memory with several windows counts by its best.

    Attributes:
        vectors: Shape (windows, dimension).
        owners: Row of the memory that each window belongs to, ascending.
        rows: Number of memories.
    """

    vectors: NDArray[np.float32]
    owners: NDArray[np.int32]
    rows: int

    def nearest(self, vector: ScoreArray, *, limit: int) -> tuple[IntArray, ScoreArray]:
        """Score all rows; `limit` does not matter to an exact scan."""
        del limit
        return np.arange(self.rows, dtype=np.int64), self._all_scores(vector)

    def scores_of(self, vector: ScoreArray, rows: IntArray) -> ScoreArray:
        """Exact scores of some rows."""
        return self._all_scores(vector)[rows]

    def _all_scores(self, vector: ScoreArray) -> ScoreArray:
        products = np.asarray(self.vectors @ vector, np.float32)
        if len(products) == self.rows:
            return products
        return best_by_owner(products, self.owners, self.rows)


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

    def nearest(self, vector: ScoreArray, *, limit: int) -> tuple[IntArray, ScoreArray]:
        """Rows that the index finds, each by its best window."""
        found = self.search(vector, limit)
        rows = self._rows_of(found.keys)
        known = rows >= 0
        owners, scores = rows[known], found.scores[known]
        distinct, places = np.unique(owners, return_inverse=True)
        return distinct, best_by_owner(scores, places, len(distinct))

    def scores_of(self, vector: ScoreArray, rows: IntArray) -> ScoreArray:
        """Exact scores of some rows, by reading their vectors."""
        stored = self.read(self.keys[rows])
        order = np.argsort(self.keys[rows])
        places = order[np.searchsorted(self.keys[rows], stored.keys, sorter=order)]
        products = np.asarray(stored.vectors @ vector, np.float32)
        return best_by_owner(products, places, len(rows))

    def _rows_of(self, keys: IntArray) -> IntArray:
        if len(self.keys) == 0:
            return np.full(len(keys), -1, np.int64)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, -1)


def best_by_owner(scores: ScoreArray, owners: NDArray[np.integer], rows: int) -> ScoreArray:
    """Give the largest score of each owner, shape (rows,); -inf for one that has none."""
    best = np.full(rows, _UNSCORED, np.float32)
    np.maximum.at(best, owners, scores)
    return best
