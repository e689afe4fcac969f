"""Models behind a URL: OpenAI-compatible embeddings; rerankers as Cohere, Jina, Memos or TEI."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, get_args

import numpy as np

from ekphory import http_service as http
from ekphory.errors import InvalidInput
from ekphory.models import embedder, reranker

# An embedding model behind `/v1/embeddings`.

BATCH_SIZE = 64
MAX_TOKENS = 512
"""Window of the model, in tokens that are counted with a margin."""


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
        place = http.complete_url(url, prefix="/v1", operation="/embeddings")
        self._service = http.Service(
            kind="embedding service", url=place, model=settings.model, api_key=settings.api_key
        )
        self._transport = http.JsonTransport(self._service, settings=settings.service)
        self._queries = embedder.VectorCache()
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
        prefixed, dimension = [prefix + text for text in texts], self.identity.dimension
        starts = range(0, len(texts), BATCH_SIZE)
        parts = [self._request(prefixed[start : start + BATCH_SIZE]) for start in starts]
        found = {part.shape[1] for part in parts}
        if found - {dimension}:
            raise self._service.error(f"gave vectors of length {found}, before {dimension}")
        return np.concatenate([np.empty((0, dimension), np.float32), *parts])

    def encode_query(self, texts: Sequence[str]) -> embedder.FloatMatrix:
        """Embed queries; the vectors of the last ones are kept and not asked for again."""
        prefix = self._settings.query_prefix
        return self._queries.encode(texts, missing=lambda asked: self._encode(asked, prefix))

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split `prefix + text` into pieces that fit the model, by a count on the safe side.

        Of a prefix no more is kept than fits half a window.
        """
        tokenise = embedder.overestimate_tokens
        room = MAX_TOKENS - 2 - len(tokenise(self._settings.passage_prefix))
        return embedder.split_behind_prefix(text, prefix, room=room, tokenise=tokenise)

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
        try:
            return embedder.as_unit_rows(vectors)
        except ValueError as error:
            raise self._service.error(str(error)) from error


# A reranking model behind a URL: what differs between the protocols that services speak.


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankDialect:
    """One protocol.

    Attributes:
        name: What it is called in settings, and part of the reranker's name.
        passages_field: Field of a request that holds the passages.
        names_model: Whether a request names the model, and how many scores it wants.
        fields: Further fields of every request.
        rows_field: Field of an answer that holds the scored rows; empty where it is the rows.
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
    rows_field: str = "results"
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
        return answer[self.rows_field] if self.rows_field else answer


_TABLE = tomllib.loads(files(__package__).joinpath("rerank_dialects.toml").read_text("utf-8"))
DIALECTS = {name: RerankDialect(name=name, **told) for name, told in _TABLE.items()}
"""By name; `rerank_dialects.toml` says who speaks them."""


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
        url = http.shown(self._service.url)
        return f"RemoteReranker({url!r}, {self.name!r}, {self._settings!r})"

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
        answer = self._transport.post(self._dialect.request(self._settings.model, query, passages))
        try:
            rows = self._dialect.rows(answer)
        except (AttributeError, KeyError, TypeError) as error:
            said = self._service.quote(str(answer))
            raise self._service.error(f"answered no list of scores: {said}") from error
        try:
            scale, named = self._settings.scores, self._dialect.score_field
            count = len(passages)
            return reranker.read_scores_in_order(rows, count=count, score_field=named, scale=scale)
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
