"""Vectors of generated memories: embedded once, kept on disk, served in place of the model."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ekphory.bench.generate import Corpus
from ekphory.models.embedder import EmbedderIdentity, EmbeddingModel, FloatMatrix

BATCH = 256
NOISE = 0.3
"""Length of the random part added to a reused vector of length 1; their cosine is about .96."""
_SAMPLE = 200
_IDENTITY_FILE = "embedder.json"
_VECTOR_FILE = "vectors.f32"


class VectorPool:
    """The vectors of the first memories of a corpus, as rows of 32-bit floats in a file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        identity = json.loads((directory / _IDENTITY_FILE).read_text(encoding="utf-8"))
        self.identity = EmbedderIdentity(**identity)
        self._file = directory / _VECTOR_FILE
        self._row_bytes = 4 * self.identity.dimension

    @classmethod
    def at(cls, cache: Path, *, embedder: EmbeddingModel, corpus: Corpus) -> VectorPool:
        """Open the pool of an embedder and a corpus, or make an empty one."""
        identity = embedder.identity
        name = re.sub(r"[^\w.-]", "-", identity.name)
        directory = cache / f"{name}-{identity.dimension}-{_digest(identity, corpus)}"
        directory.mkdir(parents=True, exist_ok=True)
        fields = {
            "name": identity.name,
            "revision": identity.revision,
            "dimension": identity.dimension,
        }
        (directory / _IDENTITY_FILE).write_text(json.dumps(fields), encoding="utf-8")
        (directory / _VECTOR_FILE).touch()
        return cls(directory)

    def __len__(self) -> int:
        return self._file.stat().st_size // self._row_bytes

    def extend(self, texts: Sequence[str], *, embedder: EmbeddingModel) -> None:
        """Embed further texts, in order, and keep their vectors."""
        with self._file.open("r+b") as stream:
            # An interrupted run may have left a part of a row.
            stream.seek(len(self) * self._row_bytes)
            stream.truncate()
            for first in range(0, len(texts), BATCH):
                vectors = embedder.encode(texts[first : first + BATCH])
                stream.write(np.ascontiguousarray(vectors, np.float32).tobytes())
                stream.flush()

    def rows(self, start: int, stop: int) -> FloatMatrix:
        """Vectors of the memories from `start` up to `stop`; beyond the pool reused with noise."""
        size = len(self)
        own = self._read(min(start, size), min(stop, size))
        reused = [self._reused(number, size) for number in range(max(start, size), stop)]
        return np.concatenate([own, *reused]) if reused else own

    def _read(self, start: int, stop: int) -> FloatMatrix:
        # Read, not mapped: mapped pages would count as memory of the process that is measured.
        with self._file.open("rb") as stream:
            stream.seek(start * self._row_bytes)
            values = np.fromfile(stream, np.float32, (stop - start) * self.identity.dimension)
        return values.reshape(-1, self.identity.dimension)

    def _reused(self, number: int, size: int) -> FloatMatrix:
        vector = self._read(number % size, number % size + 1)
        noise = np.random.default_rng(number).standard_normal(vector.shape, np.float32)
        noisy = vector + noise * np.float32(NOISE / np.sqrt(self.identity.dimension))
        return np.asarray(noisy / np.linalg.norm(noisy), np.float32)


class PooledEmbedder:
    """An embedder that gives announced passages their vectors from a pool; the rest is the model's.

    The model is loaded only when a query or another passage needs it.
    """

    def __init__(self, pool: VectorPool, load_model: Callable[[], EmbeddingModel]) -> None:
        self._pool = pool
        self._load_model = load_model
        self._model: EmbeddingModel | None = None
        self._announced: dict[str, FloatMatrix] = {}

    @property
    def identity(self) -> EmbedderIdentity:
        """That of the model."""
        return self._pool.identity

    @property
    def model(self) -> EmbeddingModel:
        """The model itself."""
        if self._model is None:
            self._model = self._load_model()
        return self._model

    def announce(self, records: Sequence[dict[str, object]], *, start: int) -> None:
        """Say which records come next, numbered from `start`: their vectors are in the pool."""
        vectors = self._pool.rows(start, start + len(records))
        self._announced = {
            passage(record): vector for record, vector in zip(records, vectors, strict=True)
        }

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Give passages their vectors."""
        unknown = [text for text in texts if text not in self._announced]
        computed = iter(self.model.encode(unknown)) if unknown else iter(())
        rows = [
            self._announced[text] if text in self._announced else next(computed) for text in texts
        ]
        return np.array(rows, np.float32).reshape(len(texts), self.identity.dimension)

    def encode_query(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed queries with the model."""
        return self.model.encode_query(texts)

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split as the model does; announced passages fit."""
        if prefix + text in self._announced:
            return [prefix + text]
        return self.model.windows(text, prefix=prefix)


def passage(record: dict[str, object]) -> str:
    """Give the text of a record as it is embedded."""
    return f"{record['producer']}: {record['text']}"


def _digest(identity: EmbedderIdentity, corpus: Corpus) -> str:
    parts = [str(identity), *(passage(record) for record in corpus.records(0, _SAMPLE))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
