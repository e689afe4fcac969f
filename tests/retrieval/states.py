"""States between two stages, made of real parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.store.in_memory import InMemoryStore
from tests.store.store_contract import CONTRACT_IDENTITY, contract_record, contract_row

from ekphory.retrieval import pipeline
from ekphory.retrieval.snapshot import Snapshots
from ekphory.scope import Scope
from ekphory.testing import HashEmbedder
from ekphory.write import compute_thread

NOW = 1_800_000_000_000_000


def state_of(*records, query="memory", k=10, min_score=None, reranker=None, chat=None):
    """A state before the first stage, over a store with these records."""
    store = InMemoryStore(CONTRACT_IDENTITY)
    rows = [contract_row(key, record) for key, record in enumerate(records, start=1)]
    store.append([replace(row, thread=compute_thread(row.record)) for row in rows])
    snapshot = Snapshots(store).of(Scope().predicate())
    request = pipeline.SearchRequest(query, k, NOW, min_score, np.ones(len(snapshot), bool))
    resources = pipeline.SearchResources(
        embedder=HashEmbedder(),
        records=store.fetch,
        children=lambda parents: [each for each in records if each.parent_id in parents],
        openings=lambda _: pipeline.NO_ROWS,
        reranker=reranker,
        chat=chat,
    )
    return pipeline.SearchState(request, snapshot, resources, query)


def with_candidates(state, probabilities, **scores):
    """The state with its first rows as candidates of these probabilities and other scores."""
    values = np.array(probabilities, np.float32)
    rows = np.arange(len(values), dtype=np.int64)
    named = {name: np.array(each, np.float32) for name, each in scores.items()}
    found = pipeline.Candidates(rows, values, {"probability": values} | named)
    return replace(state, candidates=found.sorted())


def records(*texts, **fields):
    """Records `m1`, `m2`, … with these texts."""
    return [
        replace(contract_record(number), text=text, **fields)
        for number, text in enumerate(texts, start=1)
    ]


def rows(state):
    return state.candidates.rows.tolist()
