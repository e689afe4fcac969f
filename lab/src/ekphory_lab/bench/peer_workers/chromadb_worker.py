"""chromadb: a persistent collection with cosine distance; the project is a metadata field."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from .loop import PeerStore, serve


class ChromaWorker(PeerStore):
    """Adds with vectors given; searches by vector with `where`."""

    def __init__(self, directory: str) -> None:
        chromadb: Any = importlib.import_module("chromadb")
        settings = chromadb.config.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(path=directory, settings=settings)
        self._collection = client.get_or_create_collection(
            "memories", embedding_function=None, metadata={"hnsw:space": "cosine"}
        )

    def write(self, records: list[dict[str, Any]], vectors: Any) -> None:  # noqa: ANN401  a matrix
        """Write one batch."""
        self._collection.add(
            ids=[record["id"] for record in records],
            documents=[record["text"] for record in records],
            metadatas=[{"project": record["project"]} for record in records],
            embeddings=vectors,
        )

    def find(self, payload: dict[str, Any]) -> int:
        """Search one project by vector."""
        found = self._collection.query(
            query_embeddings=[payload["vector"]],
            n_results=payload["k"],
            where={"project": payload["project"]},
        )
        return len(found["ids"][0])


if __name__ == "__main__":
    serve(ChromaWorker(sys.argv[1]).operations())
