"""mem0 with `infer=False` and its default store, Qdrant in a local directory; no language model."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from .loop import PeerStore, serve


class Mem0Worker(PeerStore):
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

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Return a text its vector; stands in for mem0's embedding model."""
        del memory_action
        vector: list[float] = self._vectors[text]
        return vector

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        """Return texts their vectors."""
        return [self.embed(text, memory_action) for text in texts]

    def prepare(self, texts: list[str], vectors: Any) -> None:  # noqa: ANN401  a matrix
        """Keep the vectors for `embed`."""
        self._vectors = {
            text: list(map(float, vector)) for text, vector in zip(texts, vectors, strict=True)
        }

    def write(self, records: list[dict[str, Any]], _vectors: Any) -> None:  # noqa: ANN401  likewise
        """Write memories."""
        for record in records:
            self._memory.add(record["text"], user_id=record["project"], infer=False)

    def find(self, payload: dict[str, Any]) -> int:
        """Search one user's memories."""
        filters = {"user_id": payload["project"]}
        found = self._memory.search(
            payload["text"], filters=filters, top_k=payload["k"], threshold=0.0
        )
        return len(found["results"])


if __name__ == "__main__":
    serve(Mem0Worker(sys.argv[1], int(sys.argv[2])).operations())
