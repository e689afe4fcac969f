"""The product, measured in a process of its own: `Memory` over one store, and its dense arm."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ekphory import engine
from ekphory.config import read_settings
from ekphory.engine import Engine
from ekphory.memory import Memory
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.loading import NO_RERANKER, load_configured_reranker
from ekphory.retrieval.dense import Wanted, best_by_owner
from ekphory.retrieval.stages.find import SearchPools
from ekphory.scope import Scope
from ekphory.store.protocol import RESIDENT_ROWS, KeyedVectors
from ekphory_lab.bench.measure import Setup
from ekphory_lab.bench.worker import Record, StoreWorker, milliseconds_since, serve

CUTOFFS = (10, 100)
"""The k of recall@k."""
_COMPLETE = (10, 100, 1000)
_TIE = 1e-6


def share_found(
    engine: Engine, embedder: EmbeddingModel, *, queries: Sequence[Mapping[str, str]]
) -> dict[str, float]:
    """Mean over the queries of the share of the exact k nearest that the dense arm finds.

    The arm is asked for as many candidates as the default pipeline asks it for. A memory counts as
    found when its exact score reaches that of the k-th, so that ties do not matter.

    Args:
        engine: The open store.
        embedder: Embeds the queries.
        queries: Each with `text` and `project`.

    Returns:
        The share by k, as text.
    """
    shares: dict[int, list[float]] = {cutoff: [] for cutoff in CUTOFFS}
    for project in sorted({query["project"] for query in queries}):
        stored = engine.store.scan_vectors(Scope(project=project).predicate())
        texts = [query["text"] for query in queries if query["project"] == project]
        for vector in embedder.encode_query(texts):
            for cutoff, share in _shares(engine, project, stored=stored, vector=vector).items():
                shares[cutoff].append(share)
    return {str(cutoff): round(float(np.mean(values)), 4) for cutoff, values in shares.items()}


def short_answers(searches: Iterable[tuple[Memory, str]]) -> int:
    """Count searches that gave fewer hits than were asked for and the scope holds."""
    short = 0
    held: dict[int, int] = {}
    for memory, text in searches:
        count = held.setdefault(id(memory), memory.count())
        short += sum(
            len(memory.search(text, k=cutoff)) < min(cutoff, count) for cutoff in _COMPLETE
        )
    return short


def _shares(
    engine: Engine, project: str, *, stored: KeyedVectors, vector: np.ndarray
) -> dict[int, float]:
    snapshot = engine.snapshots.of(Scope(project=project).predicate())
    keys, owners = np.unique(stored.keys, return_inverse=True)
    exact = best_by_owner(np.asarray(stored.vectors @ vector, np.float32), owners, len(keys))
    arm = SearchPools()
    found: dict[int, float] = {}
    for cutoff in CUTOFFS:
        wanted = min(cutoff, len(keys))
        threshold = np.partition(exact, -wanted)[-wanted] - _TIE
        depth = max(arm.depth, arm.depth_per_hit * cutoff)
        nobody, everybody = np.empty(0, np.int64), np.ones(len(snapshot), np.bool_)
        search = snapshot.dense.begin(vector, Wanted(nearest=depth, visible=everybody, now=0))
        rows, scores = search(nobody)
        best = snapshot.columns.key[rows[np.argsort(-scores)[:wanted]]]
        reached = exact[np.searchsorted(keys, best)] >= threshold
        found[cutoff] = float(reached.sum()) / wanted
    return found


_POLL_SECONDS = 0.05
_IDLE_SECONDS = 0.01
_QUIET_SECONDS = 1.5
"""The writer tidies up after a second without a write; so long its beginning is waited for."""
_ADD_FIELDS = ("id", "at", "producer", "session", "sequence", "pool", "importance", "metadata")
_REST = "rest"
"""Name of the time that no stage of the trace accounts for: reading the hits."""


class EkphoryStore(StoreWorker):
    """Writes and searches one store through `Memory`, as a user does."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._reranker = load_configured_reranker(read_settings()) or NO_RERANKER
        self._handles: dict[str | None, Memory] = {}
        self._shared: engine.Engine | None = None

    def write_records(self, records: Sequence[Record]) -> dict[str, Any]:
        """Write memories in bulk, with upkeep, and wait for indexes apart from that."""
        handle = self._handle(None)
        started = time.perf_counter()
        report = handle.add_many(records)
        self.settle()
        seconds = time.perf_counter() - started
        self._await_index()
        return {"rows": report.added, "seconds": seconds}

    def adding(self, record: Record) -> Callable[[], object]:
        """Return the call that adds one memory through the handle of its project."""
        fields: Any = {name: record[name] for name in _ADD_FIELDS if name in record}
        return partial(self._handle(str(record["project"])).add, str(record["text"]), **fields)

    def settle(self) -> None:
        """Wait for the upkeep after the last write."""
        # An idle writer begins its upkeep at once, and takes no other job before it has ended.
        time.sleep(_IDLE_SECONDS)
        self._engine().writer.submit(lambda: None).result()

    def index(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Wait for the upkeep after the last write, and for the index of too large a scope."""
        time.sleep(_QUIET_SECONDS)
        self.settle()
        if payload["rows"] / self._corpus.scopes > RESIDENT_ROWS:
            # The first search without a sufficient index asks for one.
            self._handle(self._corpus.project(0)).search("anything at all")
            self._await_index()
        return {}

    def search(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Search one scope; the query's embedding is counted."""
        handle = self._handle(payload["project"])
        started = time.perf_counter()
        result = handle.search(payload["text"], k=payload["k"])
        taken = milliseconds_since(started)
        stages = {stage.name: stage.milliseconds for stage in result.trace.stages}
        stages[_REST] = taken - result.trace.milliseconds
        return {"milliseconds": taken, "stages": stages}

    def recall(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Compare the dense arm with an exact scan of the scope, for each query."""
        found = share_found(self._engine(), self._embedder, queries=payload["queries"])
        handles = [(self._handle(query["project"]), query["text"]) for query in payload["queries"]]
        return {"recall": found, "short": short_answers(handles)}

    def close(self, _payload: dict[str, Any]) -> dict[str, Any]:
        """Close all handles, and with the last one the store."""
        for handle in self._handles.values():
            handle.close()
        if self._shared is not None:
            engine.release(self._shared)
        self._handles, self._shared = {}, None
        return {}

    def _await_index(self) -> None:
        while self._engine().writer.is_indexing:
            time.sleep(_POLL_SECONDS)

    def _handle(self, project: str | None) -> Memory:
        if project not in self._handles:
            self._handles[project] = Memory(
                self._setup.directory,
                org=self._setup.org,
                project=project,
                embedder=self._embedder,
                reranker=self._reranker,
            )
        return self._handles[project]

    def _engine(self) -> engine.Engine:
        if self._shared is None:
            self._shared = engine.acquire(self._setup.directory, self._embedder)
        return self._shared


if __name__ == "__main__":
    serve(lambda: EkphoryStore(Setup.from_json(sys.argv[1])))
