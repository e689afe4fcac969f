"""Searching: a question checked, run through a pipeline over the scope's snapshot, made to hits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from recollect.engine import Engine
from recollect.errors import InvalidInput
from recollect.filters.tree import And, Filter
from recollect.moments import to_microseconds
from recollect.pools import STANDARD_POOLS
from recollect.reading import EVERYTHING
from recollect.retrieval.presets import preset
from recollect.retrieval.snapshot import ScopeSnapshot
from recollect.retrieval.state import Candidates, SearchRequest, SearchState
from recollect.scope import Scope
from recollect.store.store import CURRENT
from recollect.trace import StageTrace, Trace
from recollect.types import Hit, SearchResult

MOST_HITS = 1000
NEWEST = "newest"
"""Name of the trace of an empty query, which no preset ranks."""


@dataclass(frozen=True, slots=True)
class Question:
    """The arguments of `Memory.search`, read but not yet checked against the store."""

    query: str
    k: int
    now: datetime
    pools: Sequence[str] | None
    filter: Filter
    min_score: float | None
    preset: str | None

    def __post_init__(self) -> None:
        if not isinstance(self.query, str):
            raise InvalidInput("query", self.query, "is no text", "Give a question or some words")
        if isinstance(self.k, bool) or not isinstance(self.k, int) or not 1 <= self.k <= MOST_HITS:
            raise InvalidInput("k", self.k, "is out of range", f"Give 1 to {MOST_HITS:,}")
        if self.min_score is not None and not _is_probability(self.min_score):
            raise InvalidInput(
                "min_score", self.min_score, "is no probability", "Give a number from 0 to 1"
            )
        if self.pools is not None and not _is_list_of_names(self.pools):
            raise InvalidInput("pools", self.pools, "is no list of pools", "Give ['agent_memory']")


def search(engine: Engine, scope: Scope, question: Question) -> SearchResult:
    """Answer a question from the scope's memories."""
    pipeline = preset(question.preset)
    started = time.perf_counter()
    snapshot = engine.snapshots.of(scope.predicate())
    request = SearchRequest(
        query=question.query,
        k=question.k,
        now=to_microseconds(question.now),
        min_score=question.min_score,
        visible=_visible(engine, scope, snapshot, question),
    )
    opened = _opening(len(snapshot), int(request.visible.sum()), started)
    if question.query.strip():
        state, trace = pipeline.run(SearchState(request, snapshot, engine.embedder, question.query))
        candidates, found = state.candidates, int(request.visible.any())
        trace = Trace(trace.preset, (opened, *trace.stages))
    else:
        candidates, found, trace = _newest(snapshot, request), 1, Trace(NEWEST, (opened,))
    if engine.store.index_is_due():
        engine.writer.build_index_soon()
    hits = _hits(engine, snapshot, candidates)
    abstained = question.min_score is not None and not hits and bool(found)
    return SearchResult(hits, trace, abstained and bool(request.visible.any()))


def _visible(
    engine: Engine, scope: Scope, snapshot: ScopeSnapshot, question: Question
) -> NDArray[np.bool_]:
    visible = snapshot.alive(to_microseconds(question.now))
    if question.pools is not None:
        _check_pools(question.pools, snapshot)
        visible &= np.isin(snapshot.columns.pool, list(question.pools))
    if question.filter != EVERYTHING:
        where = And((scope.predicate(), CURRENT, question.filter))
        visible &= np.isin(snapshot.columns.key, engine.store.keys(where))
    return visible


def _check_pools(pools: Sequence[str], snapshot: ScopeSnapshot) -> None:
    known = {*STANDARD_POOLS, *map(str, snapshot.pool_names)}
    for pool in pools:
        if pool not in known:
            raise InvalidInput(
                "pools",
                pool,
                "no such pool in this scope",
                f"Choose from {', '.join(sorted(known))}",
            )


def _newest(snapshot: ScopeSnapshot, request: SearchRequest) -> Candidates:
    rows = np.flatnonzero(request.visible)
    order = np.lexsort((-rows, -snapshot.columns.at[rows]))[: request.k]
    chosen = rows[order]
    nothing = np.zeros(len(chosen), np.float32)
    listed = Candidates(chosen, nothing, {"probability": nothing})
    return listed if request.min_score is None else listed.take(nothing >= request.min_score)


def _hits(engine: Engine, snapshot: ScopeSnapshot, candidates: Candidates) -> tuple[Hit, ...]:
    keys = snapshot.columns.key[candidates.rows].tolist()
    records = engine.records.fetch(keys)
    hits: list[Hit] = []
    for place, key in enumerate(keys):
        record = records.get(key)
        if record is not None:
            scores = {name: float(values[place]) for name, values in candidates.scores.items()}
            hits.append(Hit(record.id, record.text, scores["probability"], scores, record))
    return tuple(hits)


def _opening(rows: int, visible: int, started: float) -> StageTrace:
    return StageTrace(
        number=0,
        name="open scope",
        status="ran",
        reason=None,
        candidates_in=rows,
        candidates_out=visible,
        milliseconds=(time.perf_counter() - started) * 1000,
    )


def _is_probability(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_list_of_names(value: object) -> bool:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return len(value) > 0 and all(isinstance(name, str) for name in value)
