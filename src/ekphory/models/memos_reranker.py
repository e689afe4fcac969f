"""The protocol of Memos, which serves MemReranker: `POST /api/openmem/v1/rerank`.

It is Jina's, with the header `Authorization: Token …`, and takes 8,000 tokens of passages at a time
(memos-docs.openmem.net/cn/api_docs/core/rerank). Its client's own tests show the answer inside
`{"code": …, "message": …, "data": {…}}`, the documentation shows it bare: both are read.
"""

from __future__ import annotations

from typing import Any

from ekphory.models.rerank_dialect import RerankDialect, documents_request


def _rows(answer: Any) -> object:  # noqa: ANN401  whatever JSON holds
    return answer.get("data", answer)["results"]


MEMOS = RerankDialect(
    name="memos",
    request=documents_request,
    rows=_rows,
    prefix="/api/openmem/v1",
    scheme="Token",
    needs_model=True,
    most_tokens=8_000,
)
