"""chromadb: a persistent collection with cosine distance; the project is a metadata field."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any

from .loop import Operation, decoded, serve


class ChromaWorker:
    """Adds with vectors given; searches by vector with `where`."""

    def __init__(self, directory: str) -> None:
        chromadb: Any = importlib.import_module("chromadb")
        settings = chromadb.config.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(path=directory, settings=settings)
        self._collection = client.get_or_create_collection(
            "memories", embedding_function=None, metadata={"hnsw:space": "cosine"}
        )

    def operations(self) -> dict[str, Operation]:
        """Name what the parent may ask for."""
        return {"fill": self.fill, "search": self.search}

    def fill(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Write memories in batches of 256."""
        vectors = decoded(payload["vectors"], payload["dimension"])
        records, batch = payload["records"], payload["batch"]
        started = time.perf_counter()
        for first in range(0, len(records), batch):
            part = records[first : first + batch]
            self._collection.add(
                ids=[record["id"] for record in part],
                documents=[record["text"] for record in part],
                metadatas=[{"project": record["project"]} for record in part],
                embeddings=vectors[first : first + batch],
            )
        return {"rows": len(records), "seconds": time.perf_counter() - started}

    def search(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Search one project by vector."""
        started = time.perf_counter()
        found = self._collection.query(
            query_embeddings=[payload["vector"]],
            n_results=payload["k"],
            where={"project": payload["project"]},
        )
        milliseconds = (time.perf_counter() - started) * 1000
        return {"milliseconds": milliseconds, "hits": len(found["ids"][0])}


if __name__ == "__main__":
    serve(ChromaWorker(sys.argv[1]).operations())
