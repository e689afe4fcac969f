"""Embeds with a sentence-transformers or AgentRank model, through the `[torch]` extra."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ekphory.errors import ModelError
from ekphory.models.embedder import EmbedderIdentity, FloatMatrix
from ekphory.models.encodable import encodable
from ekphory.models.late_bound import LateBoundParts, normalised
from ekphory.models.passage_reading import PassageReading
from ekphory.models.torch_layouts import (
    SavedFormat,
    is_exportable,
    load_torch_model,
    save_torch_model,
)
from ekphory.models.torch_windows import window_of
from ekphory.models.vector_cache import VectorCache
from ekphory.models.windowing import window_spans

BATCH_SIZE = 64
QUERY_CACHE = 1024
_HASHED_SUFFIXES = frozenset({".safetensors", ".bin", ".json", ".txt", ".model", ".pt"})


class TorchEmbedder:
    """A model that torch runs. Safe to call from several threads, one at a time computes.

    `torch_layouts` says which directories it reads.
    """

    def __init__(
        self, name_or_path: str, *, device: str | None = None, query_cache: int = QUERY_CACHE
    ) -> None:
        """Load the model.

        Args:
            name_or_path: A model directory, or a hub id, which may be downloaded.
            device: Torch device; None lets sentence-transformers choose.
            query_cache: Number of queries whose vectors are kept.

        Raises:
            MissingExtra: sentence-transformers is not installed.
            ModelError: It cannot load the model.
        """
        self._loaded = load_torch_model(name_or_path, device=device)
        self._model, self._components = self._loaded.encoder, self._loaded.components
        self._late_bound = None if self._components is None else self._components.late_bound()
        self._window = window_of(self._model)
        self._lock = threading.Lock()
        self._queries = VectorCache(query_cache)
        self._identity = EmbedderIdentity(
            Path(name_or_path).name if Path(name_or_path).is_dir() else name_or_path,
            _revision(name_or_path, self._model),
            _dimension(self._model),
        )

    def __repr__(self) -> str:
        return f"TorchEmbedder({self._identity})"

    @property
    def identity(self) -> EmbedderIdentity:
        """Name, hash of the files (of a hub model: its commit) and dimension."""
        return self._identity

    @property
    def late_bound(self) -> LateBoundParts | None:
        """Vectors of age and type; None for a model that knows neither."""
        return self._late_bound

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed passages without age or type, with the model's document prompt; rows of length 1.

        Raises:
            ModelError: The model gives numbers that are not finite.
        """
        return normalised(self._content(self._pooled(self._model.encode_document, texts)))

    def read(self, texts: Sequence[str]) -> PassageReading:
        """Read passages in one pass: their content vectors, and what the heads say of them.

        Raises:
            ModelError: The model gives numbers that are not finite.
        """
        if self._components is None:
            return PassageReading(self.encode(texts))
        pooled = self._pooled(self._model.encode_document, texts)
        return PassageReading(
            self._content(pooled),
            self._components.importance_of(pooled),
            self._components.type_logits_of(pooled),
        )

    @property
    def formats(self) -> tuple[SavedFormat, ...]:
        """What the model can be saved in; only some encoders can be exported as ONNX."""
        return ("transformers", "onnx") if is_exportable(self._loaded) else ("transformers",)

    def save(self, directory: Path) -> None:
        """Write a directory that loads here, in plain `AutoModel` and in `SentenceTransformer`."""
        save_torch_model(self._loaded, directory)

    def encode_query(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed queries, with the model's query prompt; the last ones are kept."""
        return self._queries.encode(texts, missing=self._encode_new_queries)

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split `prefix + text` into overlapping pieces that fit the model.

        Of a prefix no more is kept than fits half a window.
        """
        tokenise = self._window.offsets
        room = self._window.room
        room -= max((len(tokenise(each)) for each in self._model.prompts.values()), default=0)
        offsets = tokenise(prefix)
        if len(offsets) > room // 2:
            prefix = prefix[: offsets[room // 2 - 1][1]]
        budget = room - len(tokenise(prefix)) - (1 if prefix else 0)
        spans = window_spans(text, budget=budget, tokenise=tokenise)
        return [prefix + text[start:end] for start, end in spans]

    def _encode_new_queries(self, texts: list[str]) -> FloatMatrix:
        return normalised(self._content(self._pooled(self._model.encode_query, texts)))

    def _content(self, pooled: FloatMatrix) -> FloatMatrix:
        return pooled if self._components is None else self._components.content(pooled)

    def _pooled(self, encode: Any, texts: Sequence[str]) -> FloatMatrix:  # noqa: ANN401  torch's
        if not texts:
            return np.empty((0, self._identity.dimension), dtype=np.float32)
        given = [encodable(text) for text in texts]
        with self._lock:
            vectors = encode(
                given, batch_size=BATCH_SIZE, show_progress_bar=False, convert_to_numpy=True
            )
        result = np.asarray(vectors, dtype=np.float32)
        if not np.isfinite(result).all():
            raise ModelError(
                f"{self._identity}: the model gave numbers that are not finite. Take another one."
            )
        return result


def _dimension(model: Any) -> int:  # noqa: ANN401  torch's
    return int(model.encode(["dimension"], show_progress_bar=False).shape[1])


def _revision(name_or_path: str, model: Any) -> str:  # noqa: ANN401  torch's
    directory = Path(name_or_path)
    if directory.is_dir():
        return _directory_hash(directory)
    commit = getattr(getattr(model[0], "auto_model", None), "config", None)
    return str(getattr(commit, "_commit_hash", None) or "unknown")[:16]


def _directory_hash(directory: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.suffix in _HASHED_SUFFIXES:
            digest.update(path.relative_to(directory).as_posix().encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
