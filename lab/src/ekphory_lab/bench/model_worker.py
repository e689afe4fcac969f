"""The model alone, measured in a process of its own; it also fills the pool of vectors."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from ekphory_lab.bench.generate import BATCH, VectorPool, passage
from ekphory_lab.bench.measure import Setup, load
from ekphory_lab.bench.worker import serve


class ModelWorker:
    """Embeds passages and queries."""

    def __init__(self, setup: Setup) -> None:
        self._corpus = setup.corpus
        self._model = load(setup.embedder)
        self._cache = Path(setup.pool)

    def measure(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Embed the passages from `start` to `stop` in batches of 256."""
        texts = self._texts(payload["start"], payload["stop"])
        self._model.encode(texts[:8])
        started = time.perf_counter()
        for first in range(0, len(texts), BATCH):
            self._model.encode(texts[first : first + BATCH])
        seconds = time.perf_counter() - started
        return {"texts_per_second": len(texts) / seconds, "embedder": str(self._model.identity)}

    def queries(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Embed queries one by one."""
        taken = []
        self._model.encode_query(["a first one, which may be slower"])
        for text in payload["texts"]:
            started = time.perf_counter()
            self._model.encode_query([text])
            taken.append((time.perf_counter() - started) * 1000)
        return {"milliseconds": taken}

    def pool(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Extend the pool by one stretch, up to `size` memories; tell where it is and its size."""
        pool = VectorPool.at(self._cache, embedder=self._model, corpus=self._corpus)
        stop = min(payload["size"], len(pool) + payload["stretch"])
        if stop > len(pool):
            texts = self._texts(len(pool), stop)
            pool.extend(texts, embedder=self._model)
        return {"directory": str(pool.directory), "size": len(pool)}

    def _texts(self, start: int, stop: int) -> list[str]:
        return [passage(record) for record in self._corpus.records(start, stop)]


if __name__ == "__main__":
    serve(lambda: ModelWorker(Setup.from_json(sys.argv[1])))
