"""The model alone, measured in a process of its own; it also fills the pool of vectors."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from recollect.bench.peer_workers.loop import Operation, serve
from recollect.bench.setup import Setup, load
from recollect.bench.vectors import BATCH, VectorPool, passage
from recollect.models.loading import BUNDLED_NAMES
from recollect.models.model_record import TOKENIZER_FILE
from recollect.models.onnx_embedder import BUNDLED


class ModelWorker:
    """Embeds passages and queries."""

    def __init__(self, setup: Setup) -> None:
        self._corpus = setup.corpus
        self._embedder = setup.embedder
        self._model = load(setup.embedder)
        self._cache = Path(setup.pool)

    def operations(self) -> dict[str, Operation]:
        """What the parent may ask for."""
        return {"measure": self.measure, "pool": self.pool, "queries": self.queries}

    def measure(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Embed the passages from `start` to `stop` in batches of 256."""
        texts = self._texts(payload["start"], payload["stop"])
        self._model.encode(texts[:8])
        started = time.perf_counter()
        for first in range(0, len(texts), BATCH):
            self._model.encode(texts[first : first + BATCH])
        seconds = time.perf_counter() - started
        return {
            "texts_per_second": len(texts) / seconds,
            "tokens": _average_tokens(self._embedder, texts),
            "embedder": str(self._model.identity),
        }

    def queries(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Embed queries one by one."""
        taken, vectors = [], []
        self._model.encode_query(["a first one, which may be slower"])
        for text in payload["texts"]:
            started = time.perf_counter()
            vector = self._model.encode_query([text])[0]
            taken.append((time.perf_counter() - started) * 1000)
            vectors.append(vector.tolist())
        return {"milliseconds": taken, "vectors": vectors}

    def pool(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Extend the pool by one stretch, up to `size` memories; tells where and how large it is."""
        pool = VectorPool.at(self._cache, embedder=self._model, corpus=self._corpus)
        stop = min(payload["size"], len(pool) + payload["stretch"])
        if stop > len(pool):
            texts = self._texts(len(pool), stop)
            pool.extend(texts, embedder=self._model)
        return {"directory": str(pool.directory), "size": len(pool)}

    def _texts(self, start: int, stop: int) -> list[str]:
        return [passage(record) for record in self._corpus.records(start, stop)]


def _average_tokens(embedder: str, texts: Sequence[str]) -> float | None:
    if embedder not in BUNDLED_NAMES:
        return None
    path = files("recollect.models").joinpath("bundled", BUNDLED, TOKENIZER_FILE)
    tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    return sum(len(each.ids) for each in tokenizer.encode_batch(texts)) / len(texts)


if __name__ == "__main__":
    serve(ModelWorker(Setup.from_json(sys.argv[1])).operations())
