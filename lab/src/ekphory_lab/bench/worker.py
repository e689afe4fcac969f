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

from ekphory.errors import EkphoryError
from ekphory_lab.bench.generate import PooledEmbedder, VectorPool
from ekphory_lab.bench.measure import Setup, load, read_field

Record = dict[str, object]


def serve(make: Callable[[], object]) -> None:
    """Answer `{"operation": name, "payload": {…}}` lines until the input ends.

    An operation is a method of the worker, which gets the payload. An answer holds what it gave
    and `peak_bytes`, or `error` with what was raised, also by what makes the worker.
    What libraries print goes to the error stream, so that it cannot break the answers.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker = _made(make)
    for line in sys.stdin:
        answers.write(json.dumps(answer(worker, json.loads(line))) + "\n")
        answers.flush()


def _made(make: Callable[[], object]) -> object:
    """Return the worker, or the error of ours with which it could not be made."""
    try:
        return make()
    except EkphoryError as error:
        return error


def answer(worker: object, request: Mapping[str, Any]) -> dict[str, Any]:
    """Run one operation."""
    if isinstance(worker, EkphoryError):
        return {"error": str(worker)}
    try:
        result = getattr(worker, request["operation"])(request["payload"])
    except Exception as error:  # noqa: BLE001  told to the parent, which decides
        traceback.print_exc(file=sys.stderr)
        return {"error": f"{type(error).__name__}: {error}"}
    return {**result, "peak_bytes": peak_bytes()}


def peak_bytes() -> int | None:
    """Most memory that this process has held at once; None where the system does not tell."""
    # Unlike getrusage, this does not count what the parent held before this program began.
    if (most := read_field(Path("/proc/self/status"), "VmHWM")) is not None:
        return int(most.split()[0]) * 1024
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
    def write_records(self, records: Sequence[Record]) -> dict[str, Any]:
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

    def fill(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Write memories in bulk, whose vectors are there already."""
        records = self._records(payload)
        self._embedder.announce(records, start=payload["start"])
        return self.write_records(records)

    def write(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Write memories in bulk, with the model."""
        return self.write_records(self._records(payload))

    def add(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Add memories one by one."""
        taken = []
        for record in self._records(payload):
            add = self.adding(record)
            started = time.perf_counter()
            add()
            taken.append(milliseconds_since(started))
        self.settle()
        return {"milliseconds": taken}

    def load_model(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Embed a first query."""
        self._embedder.encode_query([payload["text"]])
        return {}

    def close(self, _payload: dict[str, Any]) -> dict[str, Any]:
        """Close the store, where there is something to be closed."""
        return {}

    def _records(self, payload: dict[str, Any]) -> list[Record]:
        return list(self._corpus.records(payload["start"], payload["stop"]))


def milliseconds_since(started: float) -> float:
    """Return the milliseconds since `started`, a reading of `time.perf_counter`."""
    return (time.perf_counter() - started) * 1000
