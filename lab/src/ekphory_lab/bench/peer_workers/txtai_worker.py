"""txtai: a hybrid index (Faiss and BM25) with content in SQLite; saved after every stretch."""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path
from typing import Any

from . import given_vectors
from .loop import Operation, decoded, serve

_QUERY = "SELECT id, text, score FROM txtai WHERE similar(:text) AND project = :project LIMIT {}"


class TxtaiWorker:
    """Upserts with vectors given, through txtai's external transform; searches by SQL."""

    def __init__(self, directory: str) -> None:
        # The function is named, not passed, since the saved index must find it again.
        os.environ["ALLOW_RESOLVE_TRANSFORM"] = "True"
        txtai: Any = importlib.import_module("txtai")
        self._directory = directory
        self._index = txtai.Embeddings(
            method="external",
            transform=f"{given_vectors.__name__}.transform",
            content=True,
            hybrid=True,
        )
        if Path(directory, "config.json").exists():
            self._index.load(directory)

    def operations(self) -> dict[str, Operation]:
        """Name what the parent may ask for."""
        return {"fill": self.fill, "search": self.search}

    def fill(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Write memories in batches of 256 and save."""
        vectors = decoded(payload["vectors"], payload["dimension"])
        records, batch = payload["records"], payload["batch"]
        texts = [record["text"] for record in records]
        given_vectors.replace_all(dict(zip(texts, vectors, strict=True)))
        started = time.perf_counter()
        for first in range(0, len(records), batch):
            self._index.upsert(
                (record["id"], {"text": record["text"], "project": record["project"]}, None)
                for record in records[first : first + batch]
            )
        self._index.save(self._directory)
        return {"rows": len(records), "seconds": time.perf_counter() - started}

    def search(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Search one project by vector and words."""
        given_vectors.replace_all({payload["text"]: payload["vector"]})
        parameters = {"text": payload["text"], "project": payload["project"]}
        started = time.perf_counter()
        found = self._index.search(_QUERY.format(payload["k"]), parameters=parameters)
        milliseconds = (time.perf_counter() - started) * 1000
        return {"milliseconds": milliseconds, "hits": len(found)}


if __name__ == "__main__":
    serve(TxtaiWorker(sys.argv[1]).operations())
