"""The model in a process of its own, where it fills the pool of vectors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ekphory_lab.bench.generate import VectorPool, passage
from ekphory_lab.bench.measure import Setup, load
from ekphory_lab.bench.worker import serve


class ModelWorker:
    """Embeds memories ahead."""

    def __init__(self, setup: Setup) -> None:
        self._corpus = setup.corpus
        self._model = load(setup.embedder)
        self._cache = Path(setup.pool)

    def pool(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Extend the pool by one stretch, up to `size` memories; tell where it is and its size."""
        pool = VectorPool.at(self._cache, embedder=self._model, corpus=self._corpus)
        stop = min(payload["size"], len(pool) + payload["stretch"])
        if stop > len(pool):
            texts = [passage(record) for record in self._corpus.records(len(pool), stop)]
            pool.extend(texts, embedder=self._model)
        return {"directory": str(pool.directory), "size": len(pool)}


if __name__ == "__main__":
    serve(lambda: ModelWorker(Setup.from_json(sys.argv[1])))
