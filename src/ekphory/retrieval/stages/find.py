"""Stages 4 and 5: the memories nearest in meaning, in words and in time, with one score of all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import EmbedderMismatch
from ekphory.retrieval import fusion
from ekphory.retrieval.calibration import MEANING_CURVES, ScopeCurves
from ekphory.retrieval.dense import DenseSearch, IndexedVectors, Wanted
from ekphory.retrieval.fusion import LexicalWeight
from ekphory.retrieval.lexical import query_terms
from ekphory.retrieval.pipeline import NO_ROWS, Candidates, SearchState, Stage
from ekphory.retrieval.query import depth_factor
from ekphory.retrieval.snapshot import LARGEST_SHARE, Neighbours, ScopeSnapshot
from ekphory.retrieval.time_arm import find_timed_rows
from ekphory.store.protocol import IntArray, ScoreArray

# The two arms over one or several wordings of a query, and the best that each finds in a pool.

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
        """Return some rows' BM25 with their neighbours' share, divided by the bound."""
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
        """Return some rows' BM25 with their neighbours' share, divided by the bound."""
        return reduce(np.maximum, (each.shares(rows) for each in self.wordings))

    def of(self, rows: IntArray) -> dict[str, ScoreArray]:
        """Return the scores of some rows by name."""
        bm25 = reduce(np.maximum, (each.bm25[rows] for each in self.wordings))
        bound = np.full(len(rows), self.wordings[0].bound, np.float32)
        return {"bm25": bm25, "lexical": self.shares(rows), "lexical_bound": bound}

    def best_in_each_pool(
        self, snapshot: ScopeSnapshot, visible: NDArray[np.bool_], *, depths: IntArray
    ) -> IntArray:
        """Return the visible rows of each pool with the largest shares above 0.

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
        """Return the scores of some of these rows by name."""
        return {"cosine": self.cosine[np.searchsorted(self.rows, rows)]}


def lexical_scores(snapshot: ScopeSnapshot, texts: Sequence[str]) -> LexicalScores:
    """Score every row by each of the wordings."""
    neighbours = snapshot.neighbours
    found = (snapshot.lexical.scores(query_terms(text)) for text in texts)
    return LexicalScores(tuple(WordingScores(*scores, neighbours) for scores in found))


def dense_scores(searches: Sequence[DenseSearch], also: IntArray) -> DenseScores:
    """Score what the searches look for, and these rows, by the vector that suits each best.

    Where an index finds the rows, a row counts by the vectors that it was found with.
    """
    return reduce(_better, (DenseScores(*search(also)) for search in searches))


def best_in_each_pool(
    snapshot: ScopeSnapshot, rows: IntArray, scores: ScoreArray, *, depths: IntArray
) -> IntArray:
    """Return the best rows of each pool.

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
    wording: WordingScores, snapshot: ScopeSnapshot, visible: NDArray[np.bool_], depths: IntArray
) -> IntArray:
    """Return visible rows among which are the best of each pool, by their shares.

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
    """Return places of rows of each pool that are among its best, more than its depth if it can."""
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


# Stage 4, first part: the memories in the time that the query names.


class SearchTime(Stage):
    """Finds all memories in the times and sessions that the query names.

    Where the caller wants time to filter, nothing else is visible any more.
    """

    number = 4
    name = "search time"
    needs = frozenset({"time"})
    gives = frozenset({"timed"})

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to find without a time."""
        reading = state.reading
        if reading is None or not reading.references:
            return "the query names no time"
        if all(each.kind == "event" for each in reading.references):
            return "the query names an event and no time, so nothing is filtered"
        return None

    def run(self, state: SearchState) -> SearchState:
        """Find the rows."""
        request, reading = state.request, state.reading
        if reading is None:
            return state
        timed = find_timed_rows(state.snapshot, reading, visible=request.visible, now=request.now)
        notes: dict[str, object] = {"inside": len(timed.rows), "by_words": timed.found}
        if timed.widened:
            notes["widened"] = list(timed.widened)
        if request.time == "filter":
            pinned = request.pinned[timed.inside[request.pinned]]
            request = replace(request, visible=timed.inside, pinned=pinned)
        return replace(state, request=request, timed=timed, notes=notes)


# Stage 4: in every visible pool, the memories nearest in meaning and those that share words.

Arms = Literal["both", "dense", "lexical"]


@dataclass(kw_only=True, eq=False)
class SearchPools(Stage):
    """Runs the arms, dense and lexical, and takes the best of each from each pool.

    All pools are searched in one pass over the scope's arrays, which is what searching them beside
    each other would at best come to. Every candidate gets the scores of all arms, whichever found
    it: `cosine`, and `lexical`, its `bm25` with its neighbours' share, divided by `lexical_bound`,
    the most that the query's terms could give in this scope. Both arms search the variants of the
    query as well, and where the query names a time, they search that time besides, of which the
    first memories are found in any case.

    Attributes:
        depth, depth_per_hit: Each arm finds in each pool the larger of `depth` and
            `depth_per_hit` times the number of hits wanted, and up to twice that for a query
            that was found to need more.
        pool_depth_per_hit: The same for single pools, which then have no smallest depth.
        arms: Which arms run.
    """

    number = 4
    name = "search pools"
    needs = frozenset({"query"})

    depth: int = 300
    depth_per_hit: int = 3
    pool_depth_per_hit: Mapping[str, int] = field(default_factory=dict)
    arms: Arms = "both"

    def __post_init__(self) -> None:
        given = {"both": {"cosine", "lexical"}, "dense": {"cosine"}, "lexical": {"lexical"}}
        self.gives = frozenset({"candidates"} | given[self.arms])

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to search in an empty scope."""
        return None if state.request.visible.any() else "no memory is visible"

    def run(self, state: SearchState) -> SearchState:
        """Search and give the union of what the arms found.

        Raises:
            EmbedderMismatch: Vectors alone are to be searched, whose model is not at hand.
        """
        degraded = self._explain_words_alone(state)
        depths = self._depths(state)
        searches = self._begun(state, depths)
        lexical: LexicalScores | None = None
        by_words = NO_ROWS
        if self.arms != "dense":
            lexical = lexical_scores(state.snapshot, (state.text, *state.wordings))
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
        found = Candidates(rows, ranking, scores).sorted()
        return replace(state, candidates=found, notes=notes, degraded=degraded)

    def _explain_words_alone(self, state: SearchState) -> str | None:
        if self.arms == "lexical" or state.snapshot.has_vectors:
            return None
        stored = state.snapshot.identity.embedder
        problem = f"the model of the store's vectors, {stored}, is not at hand"
        if self.arms == "dense":
            remedy = "Make them anew with `ekphory reembed`, or take another preset."
            raise EmbedderMismatch(f"{problem}, and vectors alone were to be searched. {remedy}")
        return f"{problem}, so words alone are searched"

    def _depths(self, state: SearchState) -> IntArray:
        """Return how deep each pool is searched, by the pool's code."""
        k = state.request.k
        usual = max(self.depth, self.depth_per_hit * k)
        own = self.pool_depth_per_hit
        names = state.snapshot.pool_names.tolist()
        depths = np.array([own[name] * k if name in own else usual for name in names])
        return np.ceil(depths * depth_factor(state.query_class)).astype(np.int64)

    def _begun(self, state: SearchState, depths: IntArray) -> list[DenseSearch]:
        if self.arms == "lexical" or not state.snapshot.has_vectors:
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
    embed = state.resources.embedder.encode_query
    if state.vector is None:
        return list(np.asarray(embed([state.text, *state.wordings]), np.float32))
    others = embed(state.wordings) if state.wordings else ()
    return [state.vector, *(np.asarray(other, np.float32) for other in others)]


def _areas(state: SearchState) -> list[NDArray[np.bool_]]:
    """Where the arms look: among all that is visible, and in the time that the query names."""
    visible = state.request.visible
    return [visible] if state.timed is None else [visible, state.timed.inside]


def _first_in_time(state: SearchState, depths: IntArray) -> IntArray:
    """Return the first rows of the time arm, as many as another arm may find."""
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


# Stage 5: one score out of the arms, and the probability that it stands for.

FusionMethod = Literal[
    "weighted_sum", "reciprocal_rank", "adaptive_reciprocal_rank", "dense", "lexical"
]
_ARMS = {"dense": frozenset({"cosine"}), "lexical": frozenset({"lexical"})}
_BOTH_ARMS = frozenset({"cosine", "lexical"})


@dataclass(kw_only=True, eq=False)
class Fuse(Stage):
    """Fuses `cosine` and `lexical`, all pools on one scale.

    `weighted_sum` compares between queries; the reciprocal ranks order by ranks alone, which are
    those in one list of all pools; `dense` and `lexical` take one arm as it is. The calibrated
    probability always comes from the weighted sum, of which a single arm gives a part: ranks say
    nothing of relevance. Where no vectors could be searched, it is the lexical part that counts.

    Attributes:
        method: How the arms become one.
        lexical_weight: How much a full lexical match counts against a cosine of 1, by what the
            scope holds.
        list_per_hit: Where ranks are fused, an arm's list ends after so many rows for each hit
            wanted; None takes all that were found.
        calibration: From the weighted sum, or the part of it that `method` takes, to a probability.
    """

    number = 5
    name = "fuse"
    gives = frozenset({"fused", "probability"})

    method: FusionMethod = "weighted_sum"
    lexical_weight: LexicalWeight = fusion.LEXICAL_WEIGHT
    list_per_hit: int | None = None
    calibration: ScopeCurves = MEANING_CURVES

    def __post_init__(self) -> None:
        self.needs = _ARMS.get(self.method, _BOTH_ARMS)

    def run(self, state: SearchState) -> SearchState:
        """Score the candidates anew and order them."""
        candidates, turns = state.candidates, state.snapshot.turn_share
        method = self.method if "cosine" in candidates.scores else "lexical"
        lexical_weight = self.lexical_weight.among(turns)
        total = _total(method, candidates, lexical_weight)
        bound = candidates.scores.get("lexical_bound")
        evidence = 0.0 if bound is None else float(bound[0])
        probability = self.calibration.among(turns).probabilities(total, evidence=evidence)
        scores = {**candidates.scores, "fused": total, "probability": probability}
        fused = replace(candidates, scores=scores)
        notes: dict[str, object] = {"method": method, "lexical_weight": round(lexical_weight, 3)}
        if "reciprocal" not in method:
            # Ordered by the sum, of which the probability is a growing function.
            return replace(state, candidates=fused.ranked(probability), notes=notes)
        ranks, weights = self._ranks(candidates, state.request.k)
        notes |= {"arm_weights": weights}
        return replace(state, candidates=fused.ranked(ranks), notes=notes, order="ranks")

    def _ranks(self, candidates: Candidates, k: int) -> tuple[ScoreArray, tuple[float, float]]:
        most = None if self.list_per_hit is None else self.list_per_hit * k
        lexical = candidates.scores["lexical"]
        dense = fusion.first_found(candidates.scores["cosine"], most)
        words = fusion.first_found(np.where(lexical > 0, lexical, np.float32(np.nan)), most)
        adaptive = self.method == "adaptive_reciprocal_rank"
        weights = fusion.adaptive_weights(dense, words) if adaptive else (1.0, 1.0)
        fused = fusion.reciprocal_rank(dense, words, weights=weights)
        return fused, weights


def _total(method: FusionMethod, candidates: Candidates, lexical_weight: float) -> ScoreArray:
    if method == "dense":
        return candidates.scores["cosine"]
    lexical = candidates.scores["lexical"]
    if method == "lexical":
        return np.asarray(np.float32(lexical_weight) * lexical, np.float32)
    return fusion.weighted_sum(candidates.scores["cosine"], lexical, lexical_weight=lexical_weight)
