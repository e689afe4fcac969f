"""The protocol of Hugging Face's text-embeddings-inference: `POST /rerank` with `texts`.

The answer is a bare list. `raw_scores: false` asks for scores in [0, 1], `truncate: true` to cut
long passages instead of refusing them. A server takes 32 texts at a time unless told otherwise.
"""

from __future__ import annotations

from typing import Any

from ekphory.models.rerank_dialect import RerankDialect, RerankQuestion


def _request(question: RerankQuestion) -> dict[str, Any]:
    return {
        "query": question.query,
        "texts": list(question.passages),
        "raw_scores": False,
        "return_text": False,
        "truncate": True,
    }


def _rows(answer: object) -> object:
    return answer


TEI = RerankDialect(
    name="tei", request=_request, rows=_rows, score_field="score", prefix="", batch_size=32
)
