"""The two arms over one or several wordings of a query, and the best that each finds in a pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ekphory.retrieval.dense import DenseSearch
from ekphory.retrieval.neighbours import LARGEST_SHARE, Neighbours
from ekphory.retrieval.snapshot import ScopeSnapshot
from ekphory.retrieval.terms import query_terms

IntArray = NDArray[np.int64]
ScoreArray = NDArray[np.float32]

_NO_POOL = -1
_BEST_OF_ALL = 8
"""The best of each pool are looked for among so many times as many of all pools."""
_ROUNDING = 0.999
"""Keeps rows that rounding alone would leave out."""


@dataclass(frozen=True, slots=True)
class WordingScores:
    """BM25 of every row for one wording of the query.

    Attributes:
        bm25: Of the row alone, shape (rows,).
        bound: The most that the wording's terms could give in this scope.
        neighbours: Of the scope.
    """

    bm25: ScoreArray
    bound: float
    neighbours: Neighbours

    def shares(self, rows: IntArray) -> ScoreArray:
        """Give some rows' BM25 with their neighbours' share, divided by the bound."""
        if not self.bound:
            return np.zeros(len(rows), np.float32)
        return self.neighbours.shares(self.bm25, rows) / np.float32(self.bound)


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """What the lexical arm has to say of every row of a scope, by the wording that suits it best.

    Attributes:
        wordings: At least one; the bound of the first counts for all.
    """

    wordings: tuple[WordingScores, ...]

    def shares(self, rows: IntArray) -> ScoreArray:
        """Give some rows' BM25 with their neighbours' share, divided by the bound."""
        return reduce(np.maximum, (each.shares(rows) for each in self.wordings))

    def of(self, rows: IntArray) -> dict[str, ScoreArray]:
        """Give the scores of some rows by name."""
        bm25 = reduce(np.maximum, (each.bm25[rows] for each in self.wordings))
        bound = np.full(len(rows), self.wordings[0].bound, np.float32)
        return {"bm25": bm25, "lexical": self.shares(rows), "lexical_bound": bound}

    def best_in_each_pool(
        self, snapshot: ScopeSnapshot, visible: NDArray[np.bool_], *, depths: IntArray
    ) -> IntArray:
        """Give the visible rows of each pool with the largest shares above 0.

        Args:
            snapshot: Whose rows they are.
            visible: Which rows may be chosen, shape (rows,).
            depths: How many to choose at most, by the pool's code.
        """
        reach = [_contenders(each, snapshot, visible, depths) for each in self.wordings]
        rows = reduce(np.union1d, reach)
        shares = self.shares(rows)
        return best_in_each_pool(snapshot, rows[shares > 0], shares[shares > 0], depths=depths)


@dataclass(frozen=True, slots=True)
class DenseScores:
    """What the dense arm has to say of the rows that it scored, which ascend."""

    rows: IntArray
    cosine: ScoreArray

    def of(self, rows: IntArray) -> dict[str, ScoreArray]:
        """Give the scores of some of these rows by name."""
        return {"cosine": self.cosine[np.searchsorted(self.rows, rows)]}


def lexical_scores(snapshot: ScopeSnapshot, texts: Sequence[str]) -> LexicalScores:
    """Score every row by each of the wordings."""
    return LexicalScores(tuple(_wording_scores(snapshot, text) for text in texts))


def dense_scores(searches: Sequence[DenseSearch], also: IntArray) -> DenseScores:
    """Score what the searches look for, and these rows, by the vector that suits each best.

    Where an index finds the rows, a row counts by the vectors that it was found with.
    """
    first, *others = (DenseScores(*search.scores(also)) for search in searches)
    return reduce(_better, others, first)


def best_in_each_pool(
    snapshot: ScopeSnapshot, rows: IntArray, scores: ScoreArray, *, depths: IntArray
) -> IntArray:
    """Give the best rows of each pool.

    Args:
        snapshot: Whose rows they are.
        rows: Rows that may be chosen, ascending and distinct.
        scores: Parallel to `rows`.
        depths: How many to choose at most, by the pool's code.
    """
    if len(rows) <= depths.min(initial=0):
        return rows
    chosen = [
        _best(scores, places, int(depth))
        for places, depth in zip(_places_by_pool(snapshot, rows), depths, strict=True)
    ]
    return rows[np.concatenate(chosen)]


def _contenders(
    wording: WordingScores,
    snapshot: ScopeSnapshot,
    visible: NDArray[np.bool_],
    depths: IntArray,
) -> IntArray:
    """Give visible rows among which are the best of each pool, by their shares.

    `depth` rows of a pool are known to have at least the smallest share among themselves, so the
    best have it too; and a share that large needs a memory or neighbour with `1 / LARGEST_SHARE`
    of it.
    """
    holders = np.flatnonzero(wording.bm25 > 0)
    bm25 = wording.bm25[holders]
    codes = np.where(visible[holders], snapshot.pool_codes[holders], _NO_POOL)
    least = min(
        _at_depth(wording.neighbours.shares(wording.bm25, holders[best]), int(depth))
        for best, depth in zip(_best_holders(bm25, codes, depths), depths, strict=True)
    )
    givers = holders[bm25 >= least / LARGEST_SHARE * _ROUNDING]
    reached = wording.neighbours.reached(givers)
    return reached[visible[reached]]


def _best_holders(
    bm25: ScoreArray, codes: NDArray[np.integer], depths: IntArray
) -> Iterator[IntArray]:
    """Give places of rows of each pool that are among its best, more than its depth if it can."""
    best = np.flatnonzero(bm25 >= _at_depth(bm25, _BEST_OF_ALL * int(depths.sum())))
    for code, depth in enumerate(depths):
        own = best[codes[best] == code]
        # The best of all pools together are few, and mostly hold the best of each.
        yield own if len(own) > depth else np.flatnonzero(codes == code)


def _at_depth(scores: ScoreArray, depth: int) -> float:
    return float(np.partition(scores, -depth)[-depth]) if len(scores) > depth else 0.0


def _places_by_pool(snapshot: ScopeSnapshot, rows: IntArray) -> Sequence[IntArray]:
    if len(rows) == len(snapshot):
        return snapshot.pool_rows
    codes = snapshot.pool_codes[rows]
    return [np.flatnonzero(codes == code) for code in range(len(snapshot.pool_names))]


def _wording_scores(snapshot: ScopeSnapshot, text: str) -> WordingScores:
    bm25, bound = snapshot.lexical.scores(query_terms(text))
    return WordingScores(bm25, bound, snapshot.neighbours)


def _better(one: DenseScores, other: DenseScores) -> DenseScores:
    rows = np.union1d(one.rows, other.rows)
    best = np.full(len(rows), -np.inf, np.float32)
    for part in (one, other):
        places = np.searchsorted(rows, part.rows)
        best[places] = np.maximum(best[places], part.cosine)
    return DenseScores(rows, best)


def _best(scores: ScoreArray, places: IntArray, depth: int) -> IntArray:
    if len(places) <= depth:
        return places
    return places[np.argpartition(scores[places], -depth)[-depth:]]
