"""What every measuring process with a store answers to, whichever system keeps the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from ekphory_lab.bench.generate import PooledEmbedder, VectorPool
from ekphory_lab.bench.measure import Setup, load
from ekphory_lab.bench.peer_workers.loop import Operation

Record = dict[str, object]


class MeasuredStore(Protocol):
    """A store of one system; what its methods give is the answer to the parent."""

    def write(self, records: Sequence[Record]) -> dict[str, Any]:
        """Write memories in bulk."""
        ...

    def adding(self, record: Record) -> Callable[[], object]:
        """Return the call that adds one memory; only the call is timed."""
        ...

    def settle(self) -> None:
        """Wait for what the last write left to be done."""
        ...

    def index(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Bring the indexes up to date."""
        ...

    def search(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Search one scope; the query's embedding is counted."""
        ...

    def recall(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Compare the dense arm with an exact scan of the scope, for each query."""
        ...

    def close(self) -> None:
        """End background work."""
        ...


OpenStore = Callable[[Setup, PooledEmbedder], MeasuredStore]


class StoreWorker:
    """Puts the corpus and the model to the store that is measured."""

    def __init__(self, setup: Setup, open_store: OpenStore) -> None:
        self._corpus = setup.corpus
        self._embedder = PooledEmbedder(VectorPool(Path(setup.pool)), lambda: load(setup.embedder))
        self._store = open_store(setup, self._embedder)

    def operations(self) -> dict[str, Operation]:
        """Name what the parent may ask for."""
        return {
            "fill": self._fill,
            "write": lambda payload: self._store.write(self._records(payload)),
            "add": self._add,
            "index": self._store.index,
            "load_model": self._load_model,
            "search": self._store.search,
            "recall": self._store.recall,
            "close": self._close,
        }

    def _fill(self, payload: dict[str, Any]) -> dict[str, Any]:
        records = self._records(payload)
        self._embedder.announce(records, start=payload["start"])
        return self._store.write(records)

    def _add(self, payload: dict[str, Any]) -> dict[str, Any]:
        taken = []
        for record in self._records(payload):
            add = self._store.adding(record)
            started = time.perf_counter()
            add()
            taken.append(milliseconds_since(started))
        self._store.settle()
        return {"milliseconds": taken}

    def _load_model(self, payload: dict[str, Any]) -> dict[str, Any]:
        self._embedder.encode_query([payload["text"]])
        return {}

    def _close(self, payload: dict[str, Any]) -> dict[str, Any]:
        del payload
        self._store.close()
        return {}

    def _records(self, payload: dict[str, Any]) -> list[Record]:
        return list(self._corpus.records(payload["start"], payload["stop"]))


def milliseconds_since(started: float) -> float:
    """Return the milliseconds since `started`, a reading of `time.perf_counter`."""
    return (time.perf_counter() - started) * 1000
