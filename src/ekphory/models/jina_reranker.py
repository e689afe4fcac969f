"""Jina's protocol, which vLLM, Infinity, llama.cpp and most gateways speak: `POST /v1/rerank`.

Infinity serves it at `/rerank` unless told otherwise: give it the whole URL. Most of these services
give scores in [0, 1]; llama.cpp gives logits, for which a reranker is loaded with `scores="logit"`.
"""

from __future__ import annotations

from typing import Any

from ekphory.models.rerank_dialect import RerankDialect, RerankQuestion, documents_request


def _request(question: RerankQuestion) -> dict[str, Any]:
    return documents_request(question) | {"return_documents": False}


def _rows(answer: Any) -> object:  # noqa: ANN401  whatever JSON holds
    return answer["results"]


JINA = RerankDialect(name="jina", request=_request, rows=_rows)
