"""Embeds with any sentence-transformers model, through the `[torch]` extra."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.errors import MissingExtra, ModelError
from recollect.models.embedder import EmbedderIdentity, FloatMatrix
from recollect.models.vector_cache import VectorCache
from recollect.models.windowing import Offsets, window_spans

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

BATCH_SIZE = 64
QUERY_CACHE = 1024
FALLBACK_MAX_TOKENS = 512
_HASHED_SUFFIXES = frozenset({".safetensors", ".bin", ".json", ".txt", ".model"})


class TorchEmbedder:
    """A sentence-transformers model. Safe to call from several threads, one at a time computes."""

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
        self._model = _load(name_or_path, device)
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

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed passages, with the model's document prompt; rows of length 1.

        Raises:
            ModelError: The model gives numbers that are not finite.
        """
        with self._lock:
            return self._checked(self._model.encode_document, texts)

    def encode_query(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed queries, with the model's query prompt; the last ones are kept."""
        return self._queries.encode(texts, missing=self._encode_new_queries)

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split `prefix + text` into overlapping pieces that fit the model.

        Of a prefix no more is kept than fits half a window.
        """
        room = (self._model.max_seq_length or FALLBACK_MAX_TOKENS) - self._special_tokens()
        room -= max((len(self._offsets(each)) for each in self._model.prompts.values()), default=0)
        offsets = self._offsets(prefix)
        if len(offsets) > room // 2:
            prefix = prefix[: offsets[room // 2 - 1][1]]
        budget = room - len(self._offsets(prefix)) - (1 if prefix else 0)
        spans = window_spans(text, budget=budget, tokenise=self._offsets)
        return [prefix + text[start:end] for start, end in spans]

    def _encode_new_queries(self, texts: list[str]) -> FloatMatrix:
        with self._lock:
            return self._checked(self._model.encode_query, texts)

    def _checked(self, encode: Any, texts: Sequence[str]) -> FloatMatrix:  # noqa: ANN401
        if not texts:
            return np.empty((0, self._identity.dimension), dtype=np.float32)
        encodable = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        vectors = encode(
            encodable,
            batch_size=BATCH_SIZE,
            normalize_embeddings=True,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        result = np.asarray(vectors, dtype=np.float32)
        if not np.isfinite(result).all():
            raise ModelError(
                f"{self._identity}: the model gave numbers that are not finite. Take another one."
            )
        return result

    def _offsets(self, text: str) -> Offsets:
        encodable = text.encode("utf-8", "replace").decode("utf-8")
        tokens = self._model.tokenizer(
            encodable, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        return [(int(start), int(end)) for start, end in tokens["offset_mapping"]]

    def _special_tokens(self) -> int:
        return int(self._model.tokenizer.num_special_tokens_to_add(pair=False))


def _load(name_or_path: str, device: str | None) -> SentenceTransformer:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtra("torch", f"The embedder {name_or_path!r}") from error
    try:
        return SentenceTransformer(name_or_path, device=device)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        raise ModelError(
            f"{name_or_path}: sentence-transformers cannot load this model ({error}). "
            "Give a model directory, or a hub id with the network at hand."
        ) from error


def _dimension(model: SentenceTransformer) -> int:
    return int(model.encode(["dimension"], show_progress_bar=False).shape[1])


def _revision(name_or_path: str, model: SentenceTransformer) -> str:
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
