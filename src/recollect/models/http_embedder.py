"""Embeds through an OpenAI-compatible `/v1/embeddings` service."""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np

from recollect.errors import InvalidInput, ServiceError
from recollect.models.embedder import EmbedderIdentity, FloatMatrix
from recollect.models.vector_cache import VectorCache
from recollect.models.windowing import Offsets, window_spans

ENDPOINT = "/embeddings"
RETRIED = frozenset({408, 429, 500, 502, 503, 504})
_LONGEST_WAIT = 30.0
_PROBE = "dimension"
_PSEUDO_TOKEN = re.compile(r"[A-Za-z0-9]{1,3}|\S")
"""Finer than common tokenizers, so that no window is too long: three letters or one other sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """How a service is called.

    Attributes:
        model: The model's name, sent with every request and part of the embedder's identity.
        api_key: Sent as a bearer token; never shown.
        batch_size: Most texts of one request.
        timeout: Seconds that connecting, sending, and each wait for the answer may take.
        retries: How often a request is repeated after status 408, 429, 5xx or a broken connection.
        backoff: Seconds before the first repeat, doubled each time; `Retry-After` goes before it.
        max_tokens: Window of the model, in tokens that are counted with a margin.
        query_prompt: What stands before every query.
        passage_prompt: What stands before every passage.
        query_cache: Number of queries whose vectors are kept.
    """

    model: str = "default"
    api_key: str | None = None
    batch_size: int = 64
    timeout: float = 30.0
    retries: int = 3
    backoff: float = 0.5
    max_tokens: int = 512
    query_prompt: str = ""
    passage_prompt: str = ""
    query_cache: int = 1024

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={getattr(self, name)!r}" for name in self.__slots__ if name != "api_key"
        )
        return f"HttpSettings({shown}, api_key={'***' if self.api_key else None})"


DEFAULT_SETTINGS = HttpSettings()


class HttpEmbedder:
    """An embedding model behind a URL. Safe to call from several threads."""

    def __init__(self, url: str, *, settings: HttpSettings = DEFAULT_SETTINGS) -> None:
        """Ask the service for one vector, to learn its dimension.

        Args:
            url: The endpoint (`…/v1/embeddings`) or its base (`…/v1`).
            settings: How it is called.

        Raises:
            InvalidInput: The URL is not one.
            ServiceError: The service cannot be reached or answers nonsense.
        """
        self._url = _endpoint(url)
        self._settings = settings
        headers = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
        self._client = httpx.Client(timeout=settings.timeout, headers=headers)
        self._queries = VectorCache(settings.query_cache)
        dimension = self._request([_PROBE]).shape[1]
        prompts = f"{settings.query_prompt}\0{settings.passage_prompt}"
        revision = hashlib.sha256(prompts.encode("utf-8", "replace")).hexdigest()[:16]
        self._identity = EmbedderIdentity(settings.model, f"http-{revision}", dimension)

    def __repr__(self) -> str:
        return f"HttpEmbedder({_shown(self._url)!r}, {self._settings!r})"

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
        room = self._settings.max_tokens - 2 - len(_pseudo_tokens(self._settings.passage_prompt))
        prefix_tokens = _pseudo_tokens(prefix)
        if len(prefix_tokens) > room // 2:
            prefix = prefix[: prefix_tokens[room // 2 - 1][1]]
        budget = room - len(_pseudo_tokens(prefix))
        spans = window_spans(text, budget=budget, tokenise=_pseudo_tokens)
        return [prefix + text[start:end] for start, end in spans]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _encode(self, texts: Sequence[str], prompt: str) -> FloatMatrix:
        size = self._settings.batch_size
        parts = [
            self._request([_encodable(prompt + text) for text in texts[start : start + size]])
            for start in range(0, len(texts), size)
        ]
        if not parts:
            return np.empty((0, self._identity.dimension), dtype=np.float32)
        if any(part.shape[1] != self._identity.dimension for part in parts):
            found = {part.shape[1] for part in parts}
            raise self._error(f"gave vectors of length {found}, before {self._identity.dimension}")
        return np.concatenate(parts)

    def _request(self, texts: list[str]) -> FloatMatrix:
        body = {"model": self._settings.model, "input": texts}
        response = self._post_with_retries(body)
        try:
            content = response.json()
        except ValueError as error:
            raise self._error(f"answered what is not JSON ({error})") from error
        return self._vectors(content, len(texts))

    def _post_with_retries(self, body: Mapping[str, Any]) -> httpx.Response:
        for attempt in range(self._settings.retries + 1):
            last = attempt == self._settings.retries
            try:
                response = self._client.post(self._url, json=body)
            except httpx.HTTPError as error:
                if last:
                    raise self._error(f"could not be asked ({_reason(error)})") from error
                time.sleep(self._wait(attempt, None))
                continue
            if response.status_code == httpx.codes.OK:
                return response
            if last or response.status_code not in RETRIED:
                raise self._error(
                    f"answered status {response.status_code}: {self._quote(response)}"
                )
            time.sleep(self._wait(attempt, response.headers.get("Retry-After")))
        raise self._error("was not asked: retries must be 0 or more")

    def _wait(self, attempt: int, asked: str | None) -> float:
        if asked is not None and asked.strip().isdigit():
            return min(float(asked), _LONGEST_WAIT)
        # some jitter, so that clients refused together do not come back together
        jitter = 1 + random.random() / 4  # noqa: S311
        return float(min(self._settings.backoff * 2**attempt * jitter, _LONGEST_WAIT))

    def _vectors(self, content: object, count: int) -> FloatMatrix:
        try:
            rows = content["data"]  # type: ignore[index]
            ordered = sorted(rows, key=lambda row: int(row["index"]))
            numbers = [int(row["index"]) for row in ordered]
            vectors = np.array([row["embedding"] for row in ordered], dtype=np.float64)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise self._error(f"answered no list of embeddings ({error!r})") from error
        if numbers != list(range(count)):
            raise self._error(f"was sent {count} texts and gave {len(numbers)} embeddings")
        if vectors.ndim != 2 or vectors.shape[1] == 0:
            raise self._error(f"gave embeddings of shape {vectors.shape}")
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or (lengths == 0).any():
            raise self._error("gave an embedding that is zero or not finite")
        return np.asarray(vectors / lengths, dtype=np.float32)

    def _quote(self, response: httpx.Response) -> str:
        text = response.text[:200]
        key = self._settings.api_key
        return repr(text.replace(key, "***") if key else text)

    def _error(self, problem: str) -> ServiceError:
        return ServiceError(
            f"The embedding service at {_shown(self._url)} (model {self._settings.model!r}) "
            f"{problem}. Check the URL, the model's name and the key."
        )


def _endpoint(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(
            "url", url, "not an http(s) URL", "Give one like http://localhost:8080/v1."
        )
    path = parts.path.rstrip("/")
    if not path.endswith(ENDPOINT):
        path = f"{path or '/v1'}{ENDPOINT}"
    return parts._replace(path=path).geturl()


def _shown(url: str) -> str:
    """Leave out user, password and query: they may hold a key."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _reason(error: httpx.HTTPError) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _pseudo_tokens(text: str) -> Offsets:
    return [found.span() for found in _PSEUDO_TOKEN.finditer(text)]


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
