"""A reranking model behind a URL: the protocols of Cohere, Jina, Memos and TEI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from ekphory.errors import InvalidInput
from ekphory.http_service import (
    AuthorizationScheme,
    JsonTransport,
    Service,
    ServiceSettings,
    complete_url,
    shown,
)
from ekphory.models.embedder import overestimate_tokens
from ekphory.models.reranker import (
    RelevanceScores,
    RerankPassage,
    RerankQuery,
    ScoreScale,
    format_passage,
    format_query,
    read_scores_in_order,
)

# What differs between the protocols that services speak.


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
    scheme: AuthorizationScheme = "Bearer"
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


# The reranker.

RERANK_SERVICE = ServiceSettings(timeout=10.0, retries=1)
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
    scores: ScoreScale = "probability"
    service: ServiceSettings = RERANK_SERVICE

    def __post_init__(self) -> None:
        if self.scores not in get_args(ScoreScale):
            known = " or ".join(get_args(ScoreScale))
            raise InvalidInput("scores", self.scores, "must be a scale of scores", f"Give {known}")


DEFAULT_SETTINGS = RerankSettings()


class RemoteReranker:
    """A reranking model behind a URL. Safe to call from several threads.

    Attributes:
        name: The protocol, and the model where one is named: `cohere:rerank-v3.5`.
        batch_size: Most passages of one request; more are sent in several.
    """

    is_remote = True

    def __init__(
        self, url: str, *, dialect: RerankDialect, settings: RerankSettings = DEFAULT_SETTINGS
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
            raise InvalidInput(
                "model", settings.model, f"the protocol {dialect.name!r} needs one", "Name a model"
            )
        self._dialect = dialect
        self._settings = settings
        self._service = Service(
            kind="reranking service",
            url=complete_url(url, prefix=dialect.prefix, operation="/rerank"),
            model=settings.model,
            api_key=settings.api_key,
            scheme=dialect.scheme,
        )
        self._transport = JsonTransport(self._service, settings=settings.service)
        self.name = ":".join(filter(None, [dialect.name, settings.model]))
        self.batch_size = dialect.batch_size

    def __repr__(self) -> str:
        return f"RemoteReranker({shown(self._service.url)!r}, {self.name!r}, {self._settings!r})"

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Score each passage, in the order given; returns shape (len(passages),), in [0, 1].

        What is known of question and passages is put into words, neighbours excepted: a model that
        was not trained with them takes them for the passage. No passages ask nothing. Where there
        are more than one request takes, each batch is scored by itself; models that look at all
        passages at once score them within their batch.

        Raises:
            ServiceError: The service failed after all repeats, or left a passage out, doubled one,
                or gave a score that is not finite or not in [0, 1].
        """
        asked = "\n".join([*filter(None, [query.instruction]), format_query(query)])
        told = [format_passage(passage) for passage in passages]
        parts = [self._request(asked, batch) for batch in self._batches(told)]
        return np.concatenate([np.empty(0, dtype=np.float32), *parts])

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _request(self, query: str, passages: list[str]) -> RelevanceScores:
        body = self._dialect.request(self._settings.model, query, passages)
        answer = self._transport.post(body)
        try:
            rows = self._dialect.rows(answer)
        except (AttributeError, KeyError, TypeError) as error:
            said = self._service.quote(str(answer))
            raise self._service.error(f"answered no list of scores: {said}") from error
        try:
            return read_scores_in_order(
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
            added = 0 if most_tokens is None else len(overestimate_tokens(passage))
            is_full = most_tokens is not None and tokens + added > most_tokens
            if batch and (len(batch) == self.batch_size or is_full):
                yield batch
                batch, tokens = [], 0
            batch.append(passage)
            tokens += added
        if batch:
            yield batch
