"""A measuring process: how it answers its parent, and what a system's store is asked for."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ekphory_lab.bench.generate import PooledEmbedder, VectorPool
from ekphory_lab.bench.measure import Setup, load

Operation = Callable[[dict[str, Any]], dict[str, Any]]
Record = dict[str, object]


def serve(operations: Mapping[str, Operation]) -> None:
    """Answer `{"operation": name, "payload": {…}}` lines until the input ends.

    An answer holds what the operation gave and `peak_bytes`, or `error` with what was raised.
    What libraries print goes to the error stream, so that it cannot break the answers.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(answer(operations, json.loads(line))) + "\n")
        answers.flush()


def answer(operations: Mapping[str, Operation], request: Mapping[str, Any]) -> dict[str, Any]:
    """Run one operation."""
    try:
        result = operations[request["operation"]](request["payload"])
    except Exception as error:  # noqa: BLE001  told to the parent, which decides
        traceback.print_exc(file=sys.stderr)
        return {"error": f"{type(error).__name__}: {error}"}
    return {**result, "peak_bytes": peak_bytes()}


def peak_bytes() -> int | None:
    """Most memory that this process has held at once; None where the system does not tell."""
    status = Path("/proc/self/status")
    if status.is_file():
        # Unlike getrusage, this does not count what the parent held before this program began.
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return None
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


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
