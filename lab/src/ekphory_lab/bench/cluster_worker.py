"""A store of shards on object storage, measured in a process of its own."""

from __future__ import annotations

import importlib
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ekphory.cluster.objects import find_root
from ekphory.cluster.shards import make_shards, open_memory
from ekphory.memory import Memory
from ekphory.models.embedder import EmbedderIdentity, EmbeddingModel, FloatMatrix
from ekphory.scope import Scope
from ekphory_lab.bench.measure import Setup, load, read_field
from ekphory_lab.bench.worker import Record, milliseconds_since, serve


class TimedEmbedder:
    """A model whose processor time is counted.

    Attributes:
        cpu_seconds: Of all threads of this process while it embedded.
    """

    def __init__(self, model: EmbeddingModel) -> None:
        self._model = model
        self.cpu_seconds = 0.0

    @property
    def identity(self) -> EmbedderIdentity:
        """That of the model."""
        return self._model.identity

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed passages."""
        with self._counted():
            return self._model.encode(texts)

    def encode_query(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed queries."""
        with self._counted():
            return self._model.encode_query(texts)

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split a text as the model does."""
        return self._model.windows(text, prefix=prefix)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        began = time.process_time()
        try:
            yield
        finally:
            self.cpu_seconds += time.process_time() - began


class ClusterWorker:
    """Writes and searches projects of one store, as a replica of the server does."""

    def __init__(self, setup: Setup) -> None:
        self._setup, self._corpus = setup, setup.corpus
        self._embedder = TimedEmbedder(load(setup.embedder))
        self._handles: dict[str, Memory] = {}

    def make(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Make the store."""
        make_shards(self._setup.directory, self._embedder, count=payload["shards"])
        return {}

    def write(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Write some memories, those of each project together."""
        by_project: dict[str, list[Record]] = defaultdict(list)
        for record in self._corpus.records(payload["start"], payload["stop"]):
            by_project[str(record.pop("project"))].append(record)
        handles = {project: self._handle(project) for project in by_project}
        with self._measured() as taken:
            for project, records in by_project.items():
                report = handles[project].add_many(records)
                if report.added < len(records):
                    raise ValueError(f"{project}: {len(records) - report.added} were not added")
        return taken

    def search(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Search one project."""
        handle = self._handle(payload["project"])
        with self._measured() as taken:
            handle.search(payload["text"], k=payload["k"])
        return taken

    def size(self, _payload: dict[str, Any]) -> dict[str, Any]:
        """Return the memory of this process, and the bytes of the store's objects."""
        root = find_root(self._setup.directory)
        store = importlib.import_module("obstore.store").from_url(root)
        pages = importlib.import_module("obstore").list(store)
        stored = sum(each["size"] for page in pages for each in page)
        return {"resident": resident_bytes(), "stored": stored}

    def close(self, _payload: dict[str, Any]) -> dict[str, Any]:
        """Finish every write, and give the leases back."""
        for handle in self._handles.values():
            handle.close()
        self._handles.clear()
        return {}

    @contextmanager
    def _measured(self) -> Iterator[dict[str, float]]:
        taken: dict[str, float] = {}
        cpu, embedding = time.process_time(), self._embedder.cpu_seconds
        began = time.perf_counter()
        yield taken
        taken["milliseconds"] = milliseconds_since(began)
        taken["cpu_seconds"] = time.process_time() - cpu
        taken["embedder_seconds"] = self._embedder.cpu_seconds - embedding

    def _handle(self, project: str) -> Memory:
        if project not in self._handles:
            scope = Scope(org=self._setup.org, project=project)
            self._handles[project] = open_memory(
                self._setup.directory, scope, embedder=self._embedder
            )
        return self._handles[project]


def resident_bytes() -> int | None:
    """Return the memory that this process holds; None where the system does not tell."""
    found = read_field(Path("/proc/self/status"), "VmRSS")
    return None if found is None else int(found.split()[0]) * 1024


if __name__ == "__main__":
    serve(lambda: ClusterWorker(Setup.from_json(sys.argv[1])))
