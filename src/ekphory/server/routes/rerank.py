"""Reranking: one endpoint under the paths that its many clients ask."""

from __future__ import annotations

import math
import uuid

from fastapi import APIRouter, Response
from pydantic import TypeAdapter

from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.moments import now_utc
from ekphory.server.errors import TooLarge
from ekphory.server.routes.context import MAY_READ, MODEL_REFUSALS, TheLimits, TheService
from ekphory.server.wire.rerank import (
    RerankAnswer,
    RerankRequest,
    RerankResult,
    ShownDocument,
    TeiResult,
    Usage,
    epoch,
)

router = APIRouter(tags=["Reranking"], responses=MODEL_REFUSALS)
RerankAnswers = RerankAnswer | list[TeiResult]
_ANSWERS: TypeAdapter[RerankAnswers] = TypeAdapter(RerankAnswers)
_NEARLY = 1e-7
"""Log-odds are those of a probability at least so far from 0 and 1, so that they are finite."""


@router.post("/rerank", response_model=RerankAnswers, dependencies=MAY_READ)
@router.post("/v1/rerank", response_model=RerankAnswers, dependencies=MAY_READ)
@router.post("/v2/rerank", response_model=RerankAnswers, dependencies=MAY_READ)
@router.post("/api/openmem/v1/rerank", response_model=RerankAnswers, dependencies=MAY_READ)
def rerank(request: RerankRequest, service: TheService, limits: TheLimits) -> Response:
    """Order documents by how well they answer a query; with `texts` the answer is TEI's."""
    passages = request.passages
    if len(passages) > limits.documents:
        raise TooLarge(
            f"{len(passages):,} documents are more than {limits.documents:,}. Send less at a time."
        )
    model = service.models_alone.reranker_name
    query = RerankQuery(request.query, tuple(request.context), request.now, request.instruction)
    scores = service.models_alone.rerank(query, passages)
    order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    best = [(place, _shown(scores[place], request)) for place in order[: request.top_n or None]]
    if request.texts:
        return _written(
            [
                TeiResult(
                    index=place,
                    score=score,
                    text=passages[place].text if request.return_text else None,
                )
                for place, score in best
            ]
        )
    tokens = service.models_alone.tokens([query.text, *(each.text for each in passages)])
    answer = RerankAnswer(
        id=uuid.uuid4().hex,
        created=epoch(now_utc()),
        model=model,
        results=[
            RerankResult(
                index=place,
                relevance_score=score,
                document=_document(passages[place], request),
            )
            for place, score in best
        ],
        usage=Usage(prompt_tokens=tokens, total_tokens=tokens),
    )
    return _written(answer)


def _written(answer: RerankAnswers) -> Response:
    """Write an answer here, in a thread of its own: FastAPI would write it where all wait."""
    return Response(_ANSWERS.dump_json(answer, exclude_none=True), media_type="application/json")


def _shown(score: float, request: RerankRequest) -> float:
    if not request.raw_scores:
        return score
    inside = min(max(score, _NEARLY), 1 - _NEARLY)
    return math.log(inside / (1 - inside))


def _document(passage: RerankPassage, request: RerankRequest) -> ShownDocument | None:
    return ShownDocument(text=passage.text) if request.return_documents else None
