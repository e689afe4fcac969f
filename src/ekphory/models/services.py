"""Models behind a URL: OpenAI-compatible embeddings; rerankers as Cohere, Jina, Memos or TEI."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from ekphory import http_service as http
from ekphory.errors import InvalidInput
from ekphory.models import embedder, reranker

# An embedding model behind `/v1/embeddings`.

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
    service: http.ServiceSettings = http.DEFAULT_SERVICE_SETTINGS

    @property
    def revision(self) -> str:
        """Of a model whose weights are not seen: a hash of the prefixes."""
        prefixes = f"{self.query_prefix}\0{self.passage_prefix}"
        return f"http-{hashlib.sha256(prefixes.encode()).hexdigest()[:16]}"


_EMBEDDING_DEFAULTS = HttpSettings()


class HttpEmbedder:
    """An embedding model behind a URL. Safe to call from several threads.

    Attributes:
        identity: The model's name, and the dimension that the service gave.
    """

    def __init__(self, url: str, *, settings: HttpSettings = _EMBEDDING_DEFAULTS) -> None:
        """Ask the service for one vector, to learn its dimension.

        Args:
            url: The endpoint (`…/v1/embeddings`) or its base (`…/v1`).
            settings: What it is asked for, and how.

        Raises:
            InvalidInput: The URL is not one.
            ServiceError: The service cannot be reached or answers nonsense.
        """
        self._settings = settings
        self._service = http.Service(
            kind="embedding service",
            url=http.complete_url(url, prefix="/v1", operation="/embeddings"),
            model=settings.model,
            api_key=settings.api_key,
        )
        self._transport = http.JsonTransport(self._service, settings=settings.service)
        self._queries = embedder.VectorCache(QUERY_CACHE)
        dimension = self._request(["dimension"]).shape[1]
        self.identity = embedder.EmbedderIdentity(settings.model, settings.revision, dimension)

    def __repr__(self) -> str:
        return f"HttpEmbedder({http.shown(self._service.url)!r}, {self._settings!r})"

    def encode(self, texts: Sequence[str]) -> embedder.FloatMatrix:
        """Embed passages; returns shape (len(texts), dimension), rows of length 1.

        Raises:
            ServiceError: The service failed after all repeats, or its answer is malformed.
        """
        return self._encode(texts, self._settings.passage_prefix)

    def _encode(self, texts: Sequence[str], prefix: str) -> embedder.FloatMatrix:
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

    def encode_query(self, texts: Sequence[str]) -> embedder.FloatMatrix:
        """Embed queries; the vectors of the last ones are kept and not asked for again."""
        prefix = self._settings.query_prefix
        return self._queries.encode(texts, missing=lambda asked: self._encode(asked, prefix))

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split `prefix + text` into pieces that fit the model, by a count on the safe side.

        Of a prefix no more is kept than fits half a window.
        """
        room = MAX_TOKENS - 2 - len(embedder.overestimate_tokens(self._settings.passage_prefix))
        return embedder.split_behind_prefix(
            text, prefix, room=room, tokenise=embedder.overestimate_tokens
        )

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _request(self, texts: list[str]) -> embedder.FloatMatrix:
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


# A reranking model behind a URL: what differs between the protocols that services speak.


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankDialect:
    """One protocol.

    Attributes:
        name: What it is called in settings, and part of the reranker's name.
        passages_field: Field of a request that holds the passages.
        names_model: Whether a request names the model, and how many scores it wants.
        fields: Further fields of every request.
        rows_field: Field of an answer that holds the scored rows; None where it is the rows.
        envelope: Field of an answer that may hold the answer proper.
        score_field: Field of a row that holds its score; its position is in `index`.
        prefix: Path before `/rerank` where a URL names none.
        scheme: What stands before the key in the header `Authorization`.
        needs_model: Whether the service demands a model's name.
        batch_size: Most passages of one request.
        most_tokens: Most tokens of one request's passages, counted with a margin; None for any.
    """

    name: str
    passages_field: str = "documents"
    names_model: bool = True
    fields: Mapping[str, bool] = field(default_factory=dict)
    rows_field: str | None = "results"
    envelope: str | None = None
    score_field: str = "relevance_score"
    prefix: str = "/v1"
    scheme: http.AuthorizationScheme = "Bearer"
    needs_model: bool = False
    batch_size: int = 64
    most_tokens: int | None = None

    def request(self, model: str | None, query: str, passages: Sequence[str]) -> dict[str, Any]:
        """Return the body that asks for the scores of all passages."""
        body = {"query": query, self.passages_field: list(passages), **self.fields}
        if self.names_model:
            body["top_n"] = len(passages)
            body |= {} if model is None else {"model": model}
        return body

    def rows(self, answer: Any) -> object:  # noqa: ANN401  whatever JSON holds
        """Return the scored rows; AttributeError, KeyError or TypeError where there are none."""
        if self.envelope is not None:
            answer = answer.get(self.envelope, answer)
        return answer if self.rows_field is None else answer[self.rows_field]


# Cohere's protocol, version 2. Its scores lie in [0, 1] (docs.cohere.com/v2/reference/rerank). It
# cuts long passages itself.
COHERE = RerankDialect(name="cohere", prefix="/v2", needs_model=True, batch_size=256)

# Jina's protocol, which vLLM, Infinity, llama.cpp and most gateways speak. Infinity serves it at
# `/rerank` unless told otherwise: give it the whole URL. Most of these services give scores in
# [0, 1]; llama.cpp gives logits, for which a reranker is loaded with `scores="logit"`.
JINA = RerankDialect(name="jina", fields={"return_documents": False})

# The protocol of Memos, which serves MemReranker. It takes 8,000 tokens of passages at a time
# (memos-docs.openmem.net/cn/api_docs/core/rerank). Its client's own tests show the answer inside
# `{"code": …, "message": …, "data": {…}}`, the documentation shows it bare: both are read.
MEMOS = RerankDialect(
    name="memos",
    envelope="data",
    prefix="/api/openmem/v1",
    scheme="Token",
    needs_model=True,
    most_tokens=8_000,
)

# The protocol of Hugging Face's text-embeddings-inference. `raw_scores: false` asks for scores in
# [0, 1], `truncate: true` to cut long passages instead of refusing them. A server takes 32 texts at
# a time unless told otherwise.
TEI = RerankDialect(
    name="tei",
    passages_field="texts",
    names_model=False,
    fields={"raw_scores": False, "return_text": False, "truncate": True},
    rows_field=None,
    score_field="score",
    prefix="",
    batch_size=32,
)


# The reranker behind a URL.

RERANK_SERVICE = http.ServiceSettings(timeout=10.0, retries=1)
"""A search waits for the answer, and can go on without it: less patience than for embeddings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankSettings:
    """What a reranking service is asked for, and how.

    Attributes:
        model: The model's name; None leaves it to the service, where the protocol allows that.
        api_key: The service's key; never shown.
        scores: Whether the service gives probabilities, or logits that become probabilities by a
            sigmoid. A score outside the scale is an error, never cut.
        service: How the service is called.
    """

    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    scores: reranker.ScoreScale = "probability"
    service: http.ServiceSettings = RERANK_SERVICE

    def __post_init__(self) -> None:
        if self.scores not in get_args(reranker.ScoreScale):
            known = " or ".join(get_args(reranker.ScoreScale))
            raise InvalidInput("scores", self.scores, "must be a scale of scores", f"Give {known}")


_RERANKING_DEFAULTS = RerankSettings()


class RemoteReranker:
    """A reranking model behind a URL. Safe to call from several threads.

    Attributes:
        name: The protocol, and the model where one is named: `cohere:rerank-v3.5`.
        batch_size: Most passages of one request; more are sent in several.
    """

    is_remote = True

    def __init__(
        self, url: str, *, dialect: RerankDialect, settings: RerankSettings = _RERANKING_DEFAULTS
    ) -> None:
        """Prepare the connection; nothing is sent before the first passages are scored.

        Args:
            url: The endpoint (`…/rerank`) or its base.
            dialect: The protocol that the service speaks.
            settings: What it is asked for, and how.

        Raises:
            InvalidInput: The URL is not one, or the protocol needs a model's name.
        """
        if dialect.needs_model and not settings.model:
            problem = f"the protocol {dialect.name!r} needs one"
            raise InvalidInput("model", settings.model, problem, "Name a model")
        self._dialect = dialect
        self._settings = settings
        self._service = http.Service(
            kind="reranking service",
            url=http.complete_url(url, prefix=dialect.prefix, operation="/rerank"),
            model=settings.model,
            api_key=settings.api_key,
            scheme=dialect.scheme,
        )
        self._transport = http.JsonTransport(self._service, settings=settings.service)
        self.name = ":".join(filter(None, [dialect.name, settings.model]))
        self.batch_size = dialect.batch_size

    def __repr__(self) -> str:
        return (
            f"RemoteReranker({http.shown(self._service.url)!r}, {self.name!r}, {self._settings!r})"
        )

    def score(
        self, query: reranker.RerankQuery, passages: Sequence[reranker.RerankPassage], /
    ) -> reranker.RelevanceScores:
        """Score each passage, in the order given; returns shape (len(passages),), in [0, 1].

        What is known of question and passages is put into words, neighbours excepted: a model that
        was not trained with them takes them for the passage. No passages ask nothing. Where there
        are more than one request takes, each batch is scored by itself; models that look at all
        passages at once score them within their batch.

        Raises:
            ServiceError: The service failed after all repeats, or left a passage out, doubled one,
                or gave a score that is not finite or not in [0, 1].
        """
        asked = "\n".join([*filter(None, [query.instruction]), reranker.format_query(query)])
        told = [reranker.format_passage(passage) for passage in passages]
        parts = [self._request(asked, batch) for batch in self._batches(told)]
        return np.concatenate([np.empty(0, dtype=np.float32), *parts])

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _request(self, query: str, passages: list[str]) -> reranker.RelevanceScores:
        body = self._dialect.request(self._settings.model, query, passages)
        answer = self._transport.post(body)
        try:
            rows = self._dialect.rows(answer)
        except (AttributeError, KeyError, TypeError) as error:
            said = self._service.quote(str(answer))
            raise self._service.error(f"answered no list of scores: {said}") from error
        try:
            return reranker.read_scores_in_order(
                rows,
                count=len(passages),
                score_field=self._dialect.score_field,
                scale=self._settings.scores,
            )
        except ValueError as error:
            raise self._service.error(str(error)) from error

    def _batches(self, passages: Sequence[str]) -> Iterator[list[str]]:
        most_tokens = self._dialect.most_tokens
        batch: list[str] = []
        tokens = 0
        for passage in passages:
            added = 0 if most_tokens is None else len(embedder.overestimate_tokens(passage))
            is_full = most_tokens is not None and tokens + added > most_tokens
            if batch and (len(batch) == self.batch_size or is_full):
                yield batch
                batch, tokens = [], 0
            batch.append(passage)
            tokens += added
        if batch:
            yield batch
