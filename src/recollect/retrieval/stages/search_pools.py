"""Stage 4: in every visible pool, the memories nearest in meaning and those that share words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from recollect.retrieval.snapshot import ScopeSnapshot
from recollect.retrieval.state import Candidates, IntArray, ScoreArray, SearchState
from recollect.retrieval.terms import query_terms


class SearchPools:
    """Runs both arms, dense and lexical, and takes the best of each from each pool.

    Every candidate gets both scores, whichever arm found it:
    `cosine`, and `lexical`, its BM25 with its neighbours' share, divided by the most that the
    query's terms could give in this scope.
    """

    number = 4
    name = "search pools"
    needs = frozenset({"query"})
    gives = frozenset({"cosine", "lexical"})

    def __init__(self, *, depth: int = 300, depth_per_hit: int = 3) -> None:
        self.depth = depth
        self.depth_per_hit = depth_per_hit

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to search in an empty scope."""
        return None if state.request.visible.any() else "no memory is visible"

    def run(self, state: SearchState) -> SearchState:
        """Search and give the union of what the arms found."""
        snapshot, visible = state.snapshot, state.request.visible
        depth = max(self.depth, self.depth_per_hit * state.request.k)
        vector = np.asarray(state.embedder.encode_query([state.text])[0], np.float32)
        lexical, bm25 = _lexical_scores(snapshot, state.text)
        found, cosine = snapshot.dense.nearest(vector, limit=depth)
        dense_rows = _best_in_each_pool(snapshot, found, cosine, visible, depth)
        holders = np.flatnonzero(lexical > 0)
        lexical_rows = _best_in_each_pool(snapshot, holders, lexical[holders], visible, depth)
        rows = np.union1d(dense_rows, lexical_rows)
        if len(rows) < min(state.request.k, int(visible.sum())):
            rows = np.flatnonzero(visible)[-max(depth, state.request.k) :]
        exact = _scores_of(snapshot, vector, rows, (found, cosine))
        scores = {"cosine": exact, "bm25": bm25[rows], "lexical": lexical[rows]}
        notes = {"dense_found": len(dense_rows), "lexical_found": len(lexical_rows)}
        candidates = Candidates(rows, exact, scores).sorted()
        return replace(state, candidates=candidates, notes=notes)


def _lexical_scores(snapshot: ScopeSnapshot, text: str) -> tuple[ScoreArray, ScoreArray]:
    bm25, bound = snapshot.lexical.scores(query_terms(text))
    if bound == 0:
        return bm25, bm25
    return snapshot.neighbours.spread(bm25) / np.float32(bound), bm25


def _best_in_each_pool(
    snapshot: ScopeSnapshot,
    rows: IntArray,
    scores: ScoreArray,
    visible: NDArray[np.bool_],
    depth: int,
) -> IntArray:
    seen = visible[rows]
    rows, scores = rows[seen], scores[seen]
    if len(rows) <= depth:
        return rows
    pools = snapshot.columns.pool[rows]
    chosen = [_best(rows[pools == pool], scores[pools == pool], depth) for pool in np.unique(pools)]
    return np.concatenate(chosen)


def _best(rows: IntArray, scores: ScoreArray, depth: int) -> IntArray:
    if len(rows) <= depth:
        return rows
    return rows[np.argpartition(-scores, depth)[:depth]]


def _scores_of(
    snapshot: ScopeSnapshot,
    vector: ScoreArray,
    rows: IntArray,
    found: tuple[IntArray, ScoreArray],
) -> ScoreArray:
    """Cosine of `rows`: what the dense arm found already, and the rest computed exactly."""
    found_rows, found_scores = found
    if len(found_rows) == 0:
        return snapshot.dense.scores_of(vector, rows)
    places = np.minimum(np.searchsorted(found_rows, rows), len(found_rows) - 1)
    known = found_rows[places] == rows
    scores = np.where(known, found_scores[places], np.float32(0))
    if not known.all():
        scores[~known] = snapshot.dense.scores_of(vector, rows[~known])
    return np.asarray(scores, np.float32)
