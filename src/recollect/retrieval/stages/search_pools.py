"""Stage 4: in every visible pool, the memories nearest in meaning and those that share words."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recollect.retrieval.dense import Wanted
from recollect.retrieval.snapshot import ScopeSnapshot
from recollect.retrieval.state import Candidates, IntArray, ScoreArray, SearchState
from recollect.retrieval.terms import query_terms


class SearchPools:
    """Runs both arms, dense and lexical, and takes the best of each from each pool.

    Every candidate gets both scores, whichever arm found it:
    `cosine`, and `lexical`, its `bm25` with its neighbours' share, divided by `lexical_bound`,
    the most that the query's terms could give in this scope.
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
        snapshot, request = state.snapshot, state.request
        depth = max(self.depth, self.depth_per_hit * request.k)
        vector = np.asarray(state.embedder.encode_query([state.text])[0], np.float32)
        lexical = _lexical_scores(snapshot, state.text)
        holders = np.flatnonzero(lexical.share)
        lexical_rows = _best_in_each_pool(
            snapshot, holders, lexical.share[holders], visible=request.visible, depth=depth
        )
        wanted = Wanted(nearest=depth, also=lexical_rows, visible=request.visible)
        found, cosine = snapshot.dense.scores(vector, wanted)
        dense_rows = _best_in_each_pool(
            snapshot, found, cosine, visible=request.visible, depth=depth
        )
        rows = np.union1d(dense_rows, lexical_rows)
        if len(rows) < min(request.k, int(request.visible.sum())):
            # An index may find too few; then the newest fill up.
            rows = np.union1d(rows, np.flatnonzero(request.visible)[-depth:])
            found, cosine = snapshot.dense.scores(vector, replace(wanted, also=rows))
        scores = {
            "cosine": cosine[np.searchsorted(found, rows)],
            "bm25": lexical.bm25[rows],
            "lexical": lexical.share[rows],
            "lexical_bound": np.full(len(rows), lexical.bound, np.float32),
        }
        notes = {"dense_found": len(dense_rows), "lexical_found": len(lexical_rows)}
        candidates = Candidates(rows, scores["cosine"], scores).sorted()
        return replace(state, candidates=candidates, notes=notes)


@dataclass(frozen=True, slots=True)
class _Lexical:
    share: ScoreArray
    bm25: ScoreArray
    bound: float


def _lexical_scores(snapshot: ScopeSnapshot, text: str) -> _Lexical:
    bm25, bound = snapshot.lexical.scores(query_terms(text))
    share = snapshot.neighbours.spread(bm25) / np.float32(bound) if bound else bm25
    return _Lexical(share, bm25, bound)


def _best_in_each_pool(
    snapshot: ScopeSnapshot,
    rows: IntArray,
    scores: ScoreArray,
    *,
    visible: NDArray[np.bool_],
    depth: int,
) -> IntArray:
    seen = visible[rows]
    rows, scores = rows[seen], scores[seen]
    if len(rows) <= depth:
        return rows
    pools = snapshot.pool_codes[rows]
    found = range(len(snapshot.pool_names))
    chosen = [_best(rows[pools == pool], scores[pools == pool], depth) for pool in found]
    return np.concatenate(chosen)


def _best(rows: IntArray, scores: ScoreArray, depth: int) -> IntArray:
    if len(rows) <= depth:
        return rows
    return rows[np.argpartition(-scores, depth)[:depth]]
