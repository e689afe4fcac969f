"""Stage 4: in every visible pool, the memories nearest in meaning and those that share words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ekphory.queries.depth import depth_factor
from ekphory.retrieval.arms import (
    DenseScores,
    LexicalScores,
    best_in_each_pool,
    dense_scores,
    lexical_scores,
)
from ekphory.retrieval.dense import DenseSearch, IndexedVectors, Wanted
from ekphory.retrieval.state import NO_ROWS, Candidates, IntArray, ScoreArray, SearchState

Arms = Literal["both", "dense", "lexical"]


class SearchPools:
    """Runs the arms, dense and lexical, and takes the best of each from each pool.

    All pools are searched in one pass over the scope's arrays, which is what searching them beside
    each other would at best come to. Every candidate gets the scores of all arms, whichever found
    it: `cosine`, and `lexical`, its `bm25` with its neighbours' share, divided by `lexical_bound`,
    the most that the query's terms could give in this scope. Both arms search the variants of the
    query as well, and where the query names a time, they search that time besides, of which the
    first memories are found in any case.

    Args:
        depth, depth_per_hit: Each arm finds in each pool the larger of `depth` and
            `depth_per_hit` times the number of hits wanted, and up to twice that for a query
            that was found to need more.
        pool_depth_per_hit: The same for single pools, which then have no smallest depth.
        arms: Which arms run.
    """

    number = 4
    name = "search pools"
    needs = frozenset({"query"})

    def __init__(
        self,
        *,
        depth: int = 300,
        depth_per_hit: int = 3,
        pool_depth_per_hit: Mapping[str, int] = MappingProxyType({}),
        arms: Arms = "both",
    ) -> None:
        self.depth = depth
        self.depth_per_hit = depth_per_hit
        self.pool_depth_per_hit = dict(pool_depth_per_hit)
        self.arms = arms
        given = {"both": {"cosine", "lexical"}, "dense": {"cosine"}, "lexical": {"lexical"}}
        self.gives = frozenset({"candidates"} | given[arms])

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to search in an empty scope."""
        return None if state.request.visible.any() else "no memory is visible"

    def run(self, state: SearchState) -> SearchState:
        """Search and give the union of what the arms found."""
        depths = self._depths(state)
        searches = self._begun(state, depths)
        lexical = self._lexical(state)
        by_words = NO_ROWS
        if lexical is not None:
            word_depths = _word_depths(state, depths)
            by_words = _union(
                lexical.best_in_each_pool(state.snapshot, among, depths=word_depths)
                for among in _areas(state)
            )
        rows = _union((by_words, state.request.pinned, _first_in_time(state, depths)))
        dense = dense_scores(searches, rows) if searches else None
        by_meaning = NO_ROWS
        if dense is not None:
            by_meaning = _union(_best_among(state, dense, among, depths) for among in _areas(state))
            rows = np.union1d(by_meaning, rows)
        visible = state.request.visible
        if len(rows) < min(state.request.k, int(np.count_nonzero(visible))):
            # Words or an index may find too few; then the newest fill up.
            rows = np.union1d(rows, np.flatnonzero(visible)[-int(depths.max()) :])
            dense = dense_scores(searches, rows) if searches else None
        scores = {
            name: values for arm in (dense, lexical) if arm for name, values in arm.of(rows).items()
        }
        notes = {"dense_found": len(by_meaning), "lexical_found": len(by_words)}
        ranking = next(iter(scores.values()))
        return replace(state, candidates=Candidates(rows, ranking, scores).sorted(), notes=notes)

    def _depths(self, state: SearchState) -> IntArray:
        """Give how deep each pool is searched, by the pool's code."""
        k = state.request.k
        usual = max(self.depth, self.depth_per_hit * k)
        own = self.pool_depth_per_hit
        names = state.snapshot.pool_names.tolist()
        depths = np.array([own[name] * k if name in own else usual for name in names])
        return np.ceil(depths * depth_factor(state.query_class)).astype(np.int64)

    def _lexical(self, state: SearchState) -> LexicalScores | None:
        if self.arms == "dense":
            return None
        return lexical_scores(state.snapshot, (state.text, *state.variants.texts))

    def _begun(self, state: SearchState, depths: IntArray) -> list[DenseSearch]:
        if self.arms == "lexical":
            return []
        wanted = Wanted(
            nearest=int(depths.max()), visible=state.request.visible, now=state.request.now
        )
        return [state.snapshot.dense.begin(vector, wanted) for vector in _query_vectors(state)]


def _word_depths(state: SearchState, depths: IntArray) -> IntArray:
    """Share one depth among the pools where the vectors of what words find are read from disk."""
    if not isinstance(state.snapshot.dense, IndexedVectors):
        return depths
    shared = math.ceil(depths.max() / len(depths) / 2)
    return np.minimum(depths, max(shared, 2 * state.request.k))


def _query_vectors(state: SearchState) -> list[ScoreArray]:
    embed, variants = state.resources.embedder.encode_query, state.variants
    if variants.vector is None:
        return list(np.asarray(embed([state.text, *variants.texts]), np.float32))
    others = embed(variants.texts) if variants.texts else ()
    return [variants.vector, *(np.asarray(other, np.float32) for other in others)]


def _areas(state: SearchState) -> list[NDArray[np.bool_]]:
    """Where the arms look: among all that is visible, and in the time that the query names."""
    visible = state.request.visible
    return [visible] if state.timed is None else [visible, state.timed.inside]


def _first_in_time(state: SearchState, depths: IntArray) -> IntArray:
    """Give the first rows of the time arm, as many as another arm may find."""
    if state.timed is None:
        return NO_ROWS
    return state.timed.rows[: max(state.request.k, int(depths.max(initial=0)))]


def _best_among(
    state: SearchState, dense: DenseScores, among: NDArray[np.bool_], depths: IntArray
) -> IntArray:
    seen = among[dense.rows]
    rows, scores = dense.rows, dense.cosine
    if not seen.all():
        rows, scores = rows[seen], scores[seen]
    return best_in_each_pool(state.snapshot, rows, scores, depths=depths)


def _union(parts: Iterable[IntArray]) -> IntArray:
    return reduce(np.union1d, parts)
