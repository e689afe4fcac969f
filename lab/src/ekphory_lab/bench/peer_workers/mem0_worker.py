"""mem0 with `infer=False` and its default store, Qdrant in a local directory; no language model."""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path
from typing import Any

from .loop import Operation, decoded, serve


class Mem0Worker:
    """Adds one memory at a time, which is what mem0 offers; the project is the user's id."""

    def __init__(self, directory: str, dimension: int) -> None:
        # Its client must be made even where no language model is ever asked.
        os.environ.setdefault("OPENAI_API_KEY", "none")
        self._vectors: dict[str, Any] = {}
        store = {
            "path": str(Path(directory) / "qdrant"),
            "on_disk": True,
            "embedding_model_dims": dimension,
            "collection_name": "memories",
        }
        mem0: Any = importlib.import_module("mem0")
        self._memory = mem0.Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(Path(directory) / "history.db"),
            }
        )
        self._memory.embedding_model = self

    def operations(self) -> dict[str, Operation]:
        """Name what the parent may ask for."""
        return {"fill": self.fill, "search": self.search}

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Return a text its vector; stands in for mem0's embedding model."""
        del memory_action
        vector: list[float] = self._vectors[text]
        return vector

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        """Return texts their vectors."""
        return [self.embed(text, memory_action) for text in texts]

    def fill(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Write memories."""
        vectors = decoded(payload["vectors"], payload["dimension"]).tolist()
        records = payload["records"]
        self._vectors = {
            record["text"]: vector for record, vector in zip(records, vectors, strict=True)
        }
        started = time.perf_counter()
        for record in records:
            self._memory.add(record["text"], user_id=record["project"], infer=False)
        return {"rows": len(records), "seconds": time.perf_counter() - started}

    def search(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Search one user's memories."""
        self._vectors = {payload["text"]: payload["vector"]}
        filters = {"user_id": payload["project"]}
        started = time.perf_counter()
        found = self._memory.search(
            payload["text"], filters=filters, top_k=payload["k"], threshold=0.0
        )
        milliseconds = (time.perf_counter() - started) * 1000
        return {"milliseconds": milliseconds, "hits": len(found["results"])}


if __name__ == "__main__":
    serve(Mem0Worker(sys.argv[1], int(sys.argv[2])).operations())
