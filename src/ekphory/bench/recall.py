"""How much of what is nearest the dense arm finds, against an exact scan of the same scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ekphory.engine import Engine
from ekphory.memory import Memory
from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.dense import Wanted, best_by_owner
from ekphory.retrieval.stages.search_pools import SearchPools
from ekphory.scope import Scope
from ekphory.store.store import KeyedVectors

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
        rows, scores = search.scores(nobody)
        best = snapshot.columns.key[rows[np.argsort(-scores)[:wanted]]]
        reached = exact[np.searchsorted(keys, best)] >= threshold
        found[cutoff] = float(reached.sum()) / wanted
    return found
