"""What every measuring process with a store answers to, whichever system keeps the store."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ekphory_lab.bench.generate import PooledEmbedder, VectorPool
from ekphory_lab.bench.measure import Setup, load
from ekphory_lab.bench.peer_workers.loop import Operation

Record = dict[str, object]


class StoreWorker(ABC):
    """A store of one system, to which the corpus and the model are put.

    What the methods return is the answer to the parent.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._corpus = setup.corpus
        self._embedder = PooledEmbedder(VectorPool(Path(setup.pool)), lambda: load(setup.embedder))

    @abstractmethod
    def write(self, records: Sequence[Record]) -> dict[str, Any]:
        """Write memories in bulk."""

    @abstractmethod
    def adding(self, record: Record) -> Callable[[], object]:
        """Return the call that adds one memory; only the call is timed."""

    @abstractmethod
    def index(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Bring the indexes up to date."""

    @abstractmethod
    def search(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Search one scope; the query's embedding is counted."""

    @abstractmethod
    def recall(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Compare the dense arm with an exact scan of the scope, for each query."""

    def settle(self) -> None:  # noqa: B027  not every store has something to wait for
        """Wait for what the last write left to be done."""

    def close(self) -> None:  # noqa: B027  likewise
        """End background work."""

    def operations(self) -> dict[str, Operation]:
        """Name what the parent may ask for."""
        return {
            "fill": self._fill,
            "write": lambda payload: self.write(self._records(payload)),
            "add": self._add,
            "index": self.index,
            "load_model": self._load_model,
            "search": self.search,
            "recall": self.recall,
            "close": self._close,
        }

    def _fill(self, payload: dict[str, Any]) -> dict[str, Any]:
        records = self._records(payload)
        self._embedder.announce(records, start=payload["start"])
        return self.write(records)

    def _add(self, payload: dict[str, Any]) -> dict[str, Any]:
        taken = []
        for record in self._records(payload):
            add = self.adding(record)
            started = time.perf_counter()
            add()
            taken.append(milliseconds_since(started))
        self.settle()
        return {"milliseconds": taken}

    def _load_model(self, payload: dict[str, Any]) -> dict[str, Any]:
        self._embedder.encode_query([payload["text"]])
        return {}

    def _close(self, _payload: dict[str, Any]) -> dict[str, Any]:
        self.close()
        return {}

    def _records(self, payload: dict[str, Any]) -> list[Record]:
        return list(self._corpus.records(payload["start"], payload["stop"]))


def milliseconds_since(started: float) -> float:
    """Return the milliseconds since `started`, a reading of `time.perf_counter`."""
    return (time.perf_counter() - started) * 1000
