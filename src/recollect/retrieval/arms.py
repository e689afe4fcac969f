"""The two arms over one or several wordings of a query, and the best that each finds in a pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from recollect.retrieval.dense import DenseArm, Wanted
from recollect.retrieval.snapshot import ScopeSnapshot
from recollect.retrieval.terms import query_terms

IntArray = NDArray[np.int64]
ScoreArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """What the lexical arm has to say of every row of a scope.

    Attributes:
        share: BM25 with the neighbours' share, divided by `bound`, shape (rows,).
        bm25: BM25 of the row alone, shape (rows,).
        bound: The most that the query's terms could give in this scope.
    """

    share: ScoreArray
    bm25: ScoreArray
    bound: float

    def of(self, rows: IntArray) -> dict[str, ScoreArray]:
        """Give the scores of some rows by name."""
        bound = np.full(len(rows), self.bound, np.float32)
        return {"bm25": self.bm25[rows], "lexical": self.share[rows], "lexical_bound": bound}


@dataclass(frozen=True, slots=True)
class DenseScores:
    """What the dense arm has to say of the rows that it scored, which ascend."""

    rows: IntArray
    cosine: ScoreArray

    def of(self, rows: IntArray) -> dict[str, ScoreArray]:
        """Give the scores of some of these rows by name."""
        return {"cosine": self.cosine[np.searchsorted(self.rows, rows)]}


def lexical_scores(snapshot: ScopeSnapshot, texts: Sequence[str]) -> LexicalScores:
    """Score every row by the wording that suits it best; the bound is that of the first."""
    first, *others = (_lexical_scores(snapshot, text) for text in texts)
    share = reduce(np.maximum, (other.share for other in others), first.share)
    bm25 = reduce(np.maximum, (other.bm25 for other in others), first.bm25)
    return LexicalScores(share, bm25, first.bound)


def dense_scores(dense: DenseArm, vectors: Sequence[ScoreArray], wanted: Wanted) -> DenseScores:
    """Score what is wanted by the vector that suits it best.

    Where an index finds the rows, a row counts by the vectors that it was found with.
    """
    first, *others = (DenseScores(*dense.scores(vector, wanted)) for vector in vectors)
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


def _places_by_pool(snapshot: ScopeSnapshot, rows: IntArray) -> Sequence[IntArray]:
    if len(rows) == len(snapshot):
        return snapshot.pool_rows
    codes = snapshot.pool_codes[rows]
    return [np.flatnonzero(codes == code) for code in range(len(snapshot.pool_names))]


def _lexical_scores(snapshot: ScopeSnapshot, text: str) -> LexicalScores:
    bm25, bound = snapshot.lexical.scores(query_terms(text))
    share = snapshot.neighbours.spread(bm25) / np.float32(bound) if bound else bm25
    return LexicalScores(share, bm25, bound)


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
