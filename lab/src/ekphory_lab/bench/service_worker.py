"""Searches inside one process, by several threads: what a server is compared with."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ekphory.config import read_settings
from ekphory.memory import Memory
from ekphory.models.loading import NO_RERANKER, load_configured_reranker
from ekphory.service.episodes import EpisodeQuery
from ekphory.service.handles import Place, ServiceModels
from ekphory.service.memory_service import MemoryService
from ekphory_lab.bench.generate import BenchQuery
from ekphory_lab.bench.measure import Setup, load
from ekphory_lab.bench.worker import serve


class ServiceWorker:
    """One store, searched through `Memory` and through the service that the server stands on."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._org = setup.org or ""
        reranker = load_configured_reranker(read_settings())
        models = ServiceModels(embedder=load(setup.embedder), reranker=reranker)
        self._service = MemoryService(setup.directory, models=models)
        self._handles = {
            project: Memory(
                setup.directory,
                org=setup.org,
                project=project,
                embedder=models.embedder,
                reranker=reranker or NO_RERANKER,
            )
            for project in setup.corpus.projects()
        }

    def searches(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Let threads search for a time, each as soon as it has an answer."""
        search = {"memory": self._by_memory, "service": self._by_service}[payload["through"]]
        waiting = itertools.cycle(BenchQuery(*each) for each in payload["questions"])
        guard, taken = threading.Lock(), list[float]()
        cpu, began = time.process_time(), time.perf_counter()
        until = began + payload["seconds"]

        def ask() -> None:
            while (started := time.perf_counter()) < until:
                with guard:
                    query = next(waiting)
                search(query, payload["k"])
                taken.append((time.perf_counter() - started) * 1000)

        with ThreadPoolExecutor(payload["threads"]) as callers:
            for done in [callers.submit(ask) for _ in range(payload["threads"])]:
                done.result()
        return {
            "milliseconds": taken,
            "seconds": time.perf_counter() - began,
            "cpu_seconds": time.process_time() - cpu,
        }

    def warm(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Search for each question once."""
        for query in (BenchQuery(*each) for each in payload["questions"]):
            self._by_service(query, payload["k"])
        return {}

    def _by_memory(self, query: BenchQuery, k: int) -> object:
        return self._handles[query.project].search(query.text, k=k)

    def _by_service(self, query: BenchQuery, k: int) -> object:
        asked = EpisodeQuery(text=query.text, limit=k)
        return self._service.search(Place(self._org, query.project), asked)

    def close(self, _payload: dict[str, Any]) -> dict[str, Any]:
        """Close all handles and the store."""
        for handle in self._handles.values():
            handle.close()
        self._service.close()
        return {}


if __name__ == "__main__":
    serve(lambda: ServiceWorker(Setup.from_json(sys.argv[1])))
