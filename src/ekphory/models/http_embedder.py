"""Embeds through an OpenAI-compatible `/v1/embeddings` service."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ekphory.http_service import (
    DEFAULT_SERVICE_SETTINGS,
    JsonTransport,
    Service,
    ServiceSettings,
    complete_url,
    shown,
)
from ekphory.models.embedder import (
    EmbedderIdentity,
    FloatMatrix,
    VectorCache,
    overestimate_tokens,
    split_behind_prefix,
)

BATCH_SIZE = 64
MAX_TOKENS = 512
"""Window of the model, in tokens that are counted with a margin."""
QUERY_CACHE = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """What a service is asked for, and how.

    Attributes:
        model: The model's name, sent with every request and part of the embedder's identity.
        api_key: Sent as a bearer token; never shown.
        dimensions: How long a vector is wanted; None for the model's own length.
        query_prefix: Put before every query, such as `query: `.
        passage_prefix: Put before every passage.
        service: How the service is called.
    """

    model: str = "default"
    api_key: str | None = field(default=None, repr=False)
    dimensions: int | None = None
    query_prefix: str = ""
    passage_prefix: str = ""
    service: ServiceSettings = DEFAULT_SERVICE_SETTINGS

    @property
    def revision(self) -> str:
        """Of a model whose weights are not seen: a hash of the prefixes."""
        prefixes = f"{self.query_prefix}\0{self.passage_prefix}"
        return f"http-{hashlib.sha256(prefixes.encode()).hexdigest()[:16]}"


DEFAULT_SETTINGS = HttpSettings()


class HttpEmbedder:
    """An embedding model behind a URL. Safe to call from several threads.

    Attributes:
        identity: The model's name, and the dimension that the service gave.
    """

    def __init__(self, url: str, *, settings: HttpSettings = DEFAULT_SETTINGS) -> None:
        """Ask the service for one vector, to learn its dimension.

        Args:
            url: The endpoint (`…/v1/embeddings`) or its base (`…/v1`).
            settings: What it is asked for, and how.

        Raises:
            InvalidInput: The URL is not one.
            ServiceError: The service cannot be reached or answers nonsense.
        """
        self._settings = settings
        self._service = Service(
            kind="embedding service",
            url=complete_url(url, prefix="/v1", operation="/embeddings"),
            model=settings.model,
            api_key=settings.api_key,
        )
        self._transport = JsonTransport(self._service, settings=settings.service)
        self._queries = VectorCache(QUERY_CACHE)
        dimension = self._request(["dimension"]).shape[1]
        self.identity = EmbedderIdentity(settings.model, settings.revision, dimension)

    def __repr__(self) -> str:
        return f"HttpEmbedder({shown(self._service.url)!r}, {self._settings!r})"

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed passages; returns shape (len(texts), dimension), rows of length 1.

        Raises:
            ServiceError: The service failed after all repeats, or its answer is malformed.
        """
        return self._encode(texts, self._settings.passage_prefix)

    def _encode(self, texts: Sequence[str], prefix: str) -> FloatMatrix:
        parts = [
            self._request([prefix + text for text in texts[start : start + BATCH_SIZE]])
            for start in range(0, len(texts), BATCH_SIZE)
        ]
        if not parts:
            return np.empty((0, self.identity.dimension), dtype=np.float32)
        if any(part.shape[1] != self.identity.dimension for part in parts):
            found = {part.shape[1] for part in parts}
            raise self._service.error(
                f"gave vectors of length {found}, before {self.identity.dimension}"
            )
        return np.concatenate(parts)

    def encode_query(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed queries; the vectors of the last ones are kept and not asked for again."""
        prefix = self._settings.query_prefix
        return self._queries.encode(texts, missing=lambda asked: self._encode(asked, prefix))

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split `prefix + text` into pieces that fit the model, by a count on the safe side.

        Of a prefix no more is kept than fits half a window.
        """
        room = MAX_TOKENS - 2 - len(overestimate_tokens(self._settings.passage_prefix))
        return split_behind_prefix(text, prefix, room=room, tokenise=overestimate_tokens)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _request(self, texts: list[str]) -> FloatMatrix:
        body: dict[str, Any] = {"model": self._settings.model, "input": texts}
        if self._settings.dimensions is not None:
            body["dimensions"] = self._settings.dimensions
        content = self._transport.post(body)
        try:
            ordered = sorted(content["data"], key=lambda row: int(row["index"]))
            numbers = [int(row["index"]) for row in ordered]
            vectors = np.array([row["embedding"] for row in ordered], dtype=np.float64)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            reason = f"{type(error).__name__}: {self._service.quote(str(error))}"
            raise self._service.error(f"answered no list of embeddings ({reason})") from error
        if numbers != list(range(len(texts))):
            problem = f"was sent {len(texts)} texts and gave {len(numbers)} embeddings"
            raise self._service.error(problem)
        if vectors.ndim != 2 or vectors.shape[1] == 0:
            raise self._service.error(f"gave embeddings of shape {vectors.shape}")
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or (lengths == 0).any():
            raise self._service.error("gave an embedding that is zero or not finite")
        return np.asarray(vectors / lengths, dtype=np.float32)
