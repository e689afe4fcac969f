"""A reranking model behind a URL: the protocols of Cohere, Jina, Memos and TEI."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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

# What differs between the reranking protocols that services speak.


@dataclass(frozen=True, slots=True)
class RerankQuestion:
    """What is asked in one request.

    Attributes:
        model: Name of the model; None leaves it to the service.
        query: The query.
        passages: What is to be scored, at least one.
    """

    model: str | None
    query: str
    passages: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankDialect:
    """One protocol.

    Attributes:
        name: What it is called in settings, and part of the reranker's name.
        request: Gives the body of a request.
        rows: Gives the list of scored rows in an answer; AttributeError, KeyError or TypeError
            where there is none.
        score_field: Field of a row that holds its score; its position is in `index`.
        prefix: Path before `/rerank` where a URL names none.
        scheme: What stands before the key in the header `Authorization`.
        needs_model: Whether the service demands a model's name.
        batch_size: Most passages of one request.
        most_tokens: Most tokens of one request's passages, counted with a margin; None for any.
    """

    name: str
    request: Callable[[RerankQuestion], dict[str, Any]]
    rows: Callable[[Any], object]
    score_field: str = "relevance_score"
    prefix: str = "/v1"
    scheme: AuthorizationScheme = "Bearer"
    needs_model: bool = False
    batch_size: int = 64
    most_tokens: int | None = None


def documents_request(question: RerankQuestion) -> dict[str, Any]:
    """Return the body that asks for the scores of all `documents`, of the model if one is named."""
    model = {} if question.model is None else {"model": question.model}
    return model | {
        "query": question.query,
        "documents": list(question.passages),
        "top_n": len(question.passages),
    }


# Cohere's protocol, version 2: `POST /v2/rerank`.
#
# Cohere's scores lie in [0, 1] (docs.cohere.com/v2/reference/rerank). It cuts long passages itself.


def _cohere_rows(answer: Any) -> object:  # noqa: ANN401  whatever JSON holds
    return answer["results"]


COHERE = RerankDialect(
    name="cohere",
    request=documents_request,
    rows=_cohere_rows,
    prefix="/v2",
    needs_model=True,
    batch_size=256,
)


# Jina's protocol, which vLLM, Infinity, llama.cpp and most gateways speak: `POST /v1/rerank`.
#
# Infinity serves it at `/rerank` unless told otherwise: give it the whole URL. Most of these
# services give scores in [0, 1]; llama.cpp gives logits, for which a reranker is loaded with
# `scores="logit"`.


def _request(question: RerankQuestion) -> dict[str, Any]:
    return documents_request(question) | {"return_documents": False}


def _jina_rows(answer: Any) -> object:  # noqa: ANN401  whatever JSON holds
    return answer["results"]


JINA = RerankDialect(name="jina", request=_request, rows=_jina_rows)


# The protocol of Memos, which serves MemReranker: `POST /api/openmem/v1/rerank`.
#
# It is Jina's, with the header `Authorization: Token …`, and takes 8,000 tokens of passages at a
# time (memos-docs.openmem.net/cn/api_docs/core/rerank). Its client's own tests show the answer
# inside `{"code": …, "message": …, "data": {…}}`, the documentation shows it bare: both are read.


def _memos_rows(answer: Any) -> object:  # noqa: ANN401  whatever JSON holds
    return answer.get("data", answer)["results"]


MEMOS = RerankDialect(
    name="memos",
    request=documents_request,
    rows=_memos_rows,
    prefix="/api/openmem/v1",
    scheme="Token",
    needs_model=True,
    most_tokens=8_000,
)


# The protocol of Hugging Face's text-embeddings-inference: `POST /rerank` with `texts`.
#
# The answer is a bare list. `raw_scores: false` asks for scores in [0, 1], `truncate: true` to cut
# long passages instead of refusing them. A server takes 32 texts at a time unless told otherwise.


def _tei_request(question: RerankQuestion) -> dict[str, Any]:
    return {
        "query": question.query,
        "texts": list(question.passages),
        "raw_scores": False,
        "return_text": False,
        "truncate": True,
    }


def _tei_rows(answer: object) -> object:
    return answer


TEI = RerankDialect(
    name="tei", request=_tei_request, rows=_tei_rows, score_field="score", prefix="", batch_size=32
)


# A reranking model behind a URL, whatever protocol it speaks.

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
        batch_size: Most passages of one request; None for what the protocol's services take.
        service: How the service is called.
    """

    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    scores: ScoreScale = "probability"
    batch_size: int | None = None
    service: ServiceSettings = RERANK_SERVICE

    def __post_init__(self) -> None:
        if self.scores not in get_args(ScoreScale):
            known = " or ".join(get_args(ScoreScale))
            raise InvalidInput("scores", self.scores, "no scale of scores", f"Give {known}")
        if self.batch_size is not None and self.batch_size < 1:
            raise InvalidInput("batch_size", self.batch_size, "sends nothing", "Give 1 or more")


DEFAULT_SETTINGS = RerankSettings()


class RemoteReranker:
    """A reranking model behind a URL. Safe to call from several threads."""

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

    def __repr__(self) -> str:
        return f"RemoteReranker({shown(self._service.url)!r}, {self.name!r}, {self._settings!r})"

    @property
    def name(self) -> str:
        """The protocol, and the model where one is named: `cohere:rerank-v3.5`."""
        model = self._settings.model
        return self._dialect.name if model is None else f"{self._dialect.name}:{model}"

    @property
    def batch_size(self) -> int:
        """Most passages of one request; more are sent in several."""
        return self._settings.batch_size or self._dialect.batch_size

    @property
    def is_remote(self) -> bool:
        """Always: each score costs a request."""
        return True

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
        question = RerankQuestion(self._settings.model, query, passages)
        answer = self._transport.post(self._dialect.request(question))
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
