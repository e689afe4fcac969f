"""Embeds through an OpenAI-compatible `/v1/embeddings` service."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

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
    split_into_windows,
)

_PROBE = "dimension"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """What a service is asked for, and how.

    Attributes:
        model: The model's name, sent with every request and part of the embedder's identity.
        api_key: Sent as a bearer token; never shown.
        batch_size: Most texts of one request.
        max_tokens: Window of the model, in tokens that are counted with a margin.
        query_prompt: What stands before every query.
        passage_prompt: What stands before every passage.
        query_cache: Number of queries whose vectors are kept.
        service: How the service is called.
    """

    model: str = "default"
    api_key: str | None = field(default=None, repr=False)
    batch_size: int = 64
    max_tokens: int = 512
    query_prompt: str = ""
    passage_prompt: str = ""
    query_cache: int = 1024
    service: ServiceSettings = DEFAULT_SERVICE_SETTINGS


DEFAULT_SETTINGS = HttpSettings()


class HttpEmbedder:
    """An embedding model behind a URL. Safe to call from several threads."""

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
        self._queries = VectorCache(settings.query_cache)
        dimension = self._request([_PROBE]).shape[1]
        prompts = f"{settings.query_prompt}\0{settings.passage_prompt}"
        revision = hashlib.sha256(prompts.encode("utf-8", "replace")).hexdigest()[:16]
        self._identity = EmbedderIdentity(settings.model, f"http-{revision}", dimension)

    def __repr__(self) -> str:
        return f"HttpEmbedder({shown(self._service.url)!r}, {self._settings!r})"

    @property
    def identity(self) -> EmbedderIdentity:
        """The model's name, a hash of the prompts, and the dimension that the service gave."""
        return self._identity

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed passages; returns shape (len(texts), dimension), rows of length 1.

        Raises:
            ServiceError: The service failed after all repeats, or its answer is malformed.
        """
        return self._encode(texts, self._settings.passage_prompt)

    def encode_query(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed queries; the vectors of the last ones are kept and not asked for again."""
        return self._queries.encode(
            texts, missing=lambda unknown: self._encode(unknown, self._settings.query_prompt)
        )

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split `prefix + text` into pieces that fit the model, by a count on the safe side.

        Of a prefix no more is kept than fits half a window.
        """
        room = (
            self._settings.max_tokens - 2 - len(overestimate_tokens(self._settings.passage_prompt))
        )
        prefix_tokens = overestimate_tokens(prefix)
        if len(prefix_tokens) > room // 2:
            prefix = prefix[: prefix_tokens[room // 2 - 1][1]]
        budget = room - len(overestimate_tokens(prefix))
        spans = split_into_windows(text, budget=budget, tokenise=overestimate_tokens)
        return [prefix + text[start:end] for start, end in spans]

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _encode(self, texts: Sequence[str], prompt: str) -> FloatMatrix:
        size = self._settings.batch_size
        parts = [
            self._request([prompt + text for text in texts[start : start + size]])
            for start in range(0, len(texts), size)
        ]
        if not parts:
            return np.empty((0, self._identity.dimension), dtype=np.float32)
        if any(part.shape[1] != self._identity.dimension for part in parts):
            found = {part.shape[1] for part in parts}
            raise self._service.error(
                f"gave vectors of length {found}, before {self._identity.dimension}"
            )
        return np.concatenate(parts)

    def _request(self, texts: list[str]) -> FloatMatrix:
        content = self._transport.post({"model": self._settings.model, "input": texts})
        return self._vectors(content, len(texts))

    def _vectors(self, content: object, count: int) -> FloatMatrix:
        try:
            rows = content["data"]  # type: ignore[index]  # checked by the except below
            ordered = sorted(rows, key=lambda row: int(row["index"]))
            numbers = [int(row["index"]) for row in ordered]
            vectors = np.array([row["embedding"] for row in ordered], dtype=np.float64)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            reason = f"{type(error).__name__}: {self._service.quote(str(error))}"
            raise self._service.error(f"answered no list of embeddings ({reason})") from error
        if numbers != list(range(count)):
            raise self._service.error(f"was sent {count} texts and gave {len(numbers)} embeddings")
        if vectors.ndim != 2 or vectors.shape[1] == 0:
            raise self._service.error(f"gave embeddings of shape {vectors.shape}")
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or (lengths == 0).any():
            raise self._service.error("gave an embedding that is zero or not finite")
        return np.asarray(vectors / lengths, dtype=np.float32)
