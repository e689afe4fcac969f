"""What differs between the reranking protocols that services speak."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ekphory.services.service import AuthorizationScheme


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
    """Give the body that asks for the scores of all `documents`, of the model if one is named."""
    model = {} if question.model is None else {"model": question.model}
    return model | {
        "query": question.query,
        "documents": list(question.passages),
        "top_n": len(question.passages),
    }
