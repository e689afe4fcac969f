"""txtai: a hybrid index (Faiss and BM25) with content in SQLite; saved after every stretch."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from . import given_vectors
from .loop import PeerStore, serve

_QUERY = "SELECT id, text, score FROM txtai WHERE similar(:text) AND project = :project LIMIT {}"


class TxtaiWorker(PeerStore):
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

    def prepare(self, texts: list[str], vectors: Any) -> None:  # noqa: ANN401  a matrix
        """Keep the vectors for the function that txtai calls."""
        given_vectors.replace_all(dict(zip(texts, vectors, strict=True)))

    def write(self, records: list[dict[str, Any]], _vectors: Any) -> None:  # noqa: ANN401  likewise
        """Write one batch."""
        self._index.upsert(
            (record["id"], {"text": record["text"], "project": record["project"]}, None)
            for record in records
        )

    def save(self) -> None:
        """Write the index to its directory."""
        self._index.save(self._directory)

    def find(self, payload: dict[str, Any]) -> int:
        """Search one project by vector and words."""
        parameters = {"text": payload["text"], "project": payload["project"]}
        return len(self._index.search(_QUERY.format(payload["k"]), parameters=parameters))


if __name__ == "__main__":
    serve(TxtaiWorker(sys.argv[1]).operations())
