"""Cohere's protocol, version 2: `POST /v2/rerank`.

Cohere's scores lie in [0, 1] (docs.cohere.com/v2/reference/rerank). It cuts long passages itself.
"""

from __future__ import annotations

from typing import Any

from ekphory.models.rerank_dialect import RerankDialect, documents_request


def _rows(answer: Any) -> object:  # noqa: ANN401  whatever JSON holds
    return answer["results"]


COHERE = RerankDialect(
    name="cohere",
    request=documents_request,
    rows=_rows,
    prefix="/v2",
    needs_model=True,
    batch_size=256,
)
