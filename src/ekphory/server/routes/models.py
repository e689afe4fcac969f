"""Reranking under the paths that its many clients ask, and embeddings as OpenAI has them."""

from __future__ import annotations

import base64
import math
import uuid
from collections.abc import Iterable

import numpy as np
from fastapi import APIRouter, Response
from numpy.typing import NDArray
from pydantic import TypeAdapter

from ekphory.errors import InvalidInput
from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory.prompting.block import estimate_tokens
from ekphory.server.errors import TooLarge
from ekphory.server.routes.context import MAY_READ, MODEL_REFUSALS, TheLimits, TheService
from ekphory.server.schemas.models import (
    Embedding,
    EmbeddingAnswer,
    EmbeddingRequest,
    Model,
    Models,
    RerankAnswer,
    RerankRequest,
    RerankResult,
    ShownDocument,
    TeiResult,
    Usage,
    epoch,
)
from ekphory.service.handles import shorten_vectors
from ekphory.types import now_utc

# Reranking: one endpoint under the paths that its many clients ask.

rerank_router = APIRouter(tags=["Reranking"], responses=MODEL_REFUSALS)
RerankAnswers = RerankAnswer | list[TeiResult]
_ANSWERS: TypeAdapter[RerankAnswers] = TypeAdapter(RerankAnswers)
_NEARLY = 1e-7
"""Log-odds are those of a probability at least so far from 0 and 1, so that they are finite."""


@rerank_router.post("/rerank", response_model=RerankAnswers, dependencies=MAY_READ)
@rerank_router.post("/v1/rerank", response_model=RerankAnswers, dependencies=MAY_READ)
@rerank_router.post("/v2/rerank", response_model=RerankAnswers, dependencies=MAY_READ)
@rerank_router.post("/api/openmem/v1/rerank", response_model=RerankAnswers, dependencies=MAY_READ)
def rerank(request: RerankRequest, service: TheService, limits: TheLimits) -> Response:
    """Order documents by how well they answer a query; with `texts` the answer is TEI's."""
    passages = request.passages
    if len(passages) > limits.documents:
        raise TooLarge(
            f"{len(passages):,} documents are more than {limits.documents:,}. Send less at a time."
        )
    query = RerankQuery(request.query, tuple(request.context), request.now, request.instruction)
    scores = service.models.rerank(query, passages)
    order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    best = [(place, _scale(scores[place], request)) for place in order[: request.top_n or None]]
    if request.texts:
        return _write_answer(
            [
                TeiResult(
                    index=place,
                    score=score,
                    text=passages[place].text if request.return_text else None,
                )
                for place, score in best
            ]
        )
    tokens = sum(map(estimate_tokens, (query.text, *(each.text for each in passages))))
    answer = RerankAnswer(
        id=uuid.uuid4().hex,
        created=epoch(now_utc()),
        model=service.models.reranker_name,
        results=[
            RerankResult(
                index=place,
                relevance_score=score,
                document=_show_document(passages[place], request),
            )
            for place, score in best
        ],
        usage=Usage(prompt_tokens=tokens, total_tokens=tokens),
    )
    return _write_answer(answer)


def _write_answer(answer: RerankAnswers) -> Response:
    """Write an answer here, in a thread of its own: FastAPI would write it where all wait."""
    return Response(_ANSWERS.dump_json(answer, exclude_none=True), media_type="application/json")


def _scale(score: float, request: RerankRequest) -> float:
    if not request.raw_scores:
        return score
    inside = min(max(score, _NEARLY), 1 - _NEARLY)
    return math.log(inside / (1 - inside))


def _show_document(passage: RerankPassage, request: RerankRequest) -> ShownDocument | None:
    return ShownDocument(text=passage.text) if request.return_documents else None


# Embeddings and models, as OpenAI has them.

FloatVector = NDArray[np.float32]

embeddings_router = APIRouter(prefix="/v1", tags=["Embeddings"], responses=MODEL_REFUSALS)


@embeddings_router.post("/embeddings", dependencies=MAY_READ, response_model=EmbeddingAnswer)
def embed(request: EmbeddingRequest, service: TheService, limits: TheLimits) -> Response:
    """Embed texts; the answer says what they were embedded as."""
    texts = request.texts
    if len(texts) > limits.batch:
        raise TooLarge(f"{len(texts):,} texts are more than {limits.batch:,}. Send less at a time.")
    identity = service.models.embedder.identity
    wanted = request.dimensions or identity.dimension
    if wanted > identity.dimension:
        raise InvalidInput(
            "dimensions", wanted, f"the model has {identity.dimension}", "Give as many at most"
        )
    vectors = service.models.embed(texts, request.purpose)
    if wanted < identity.dimension:
        vectors = shorten_vectors(vectors, wanted)
    tokens = sum(map(estimate_tokens, texts))
    answer = EmbeddingAnswer(
        data=[],
        model=identity.name,
        usage=Usage(prompt_tokens=tokens, total_tokens=tokens),
        input_type=request.purpose,
    )
    found = (
        Embedding(index=place, embedding=_encode(vector, request.encoding_format))
        for place, vector in enumerate(vectors)
    )
    return Response(_encode_vector(answer, found), media_type="application/json")


@embeddings_router.get("/models", dependencies=MAY_READ)
def list_models(service: TheService) -> Models:
    """List the models that the server has."""
    found = [Model(id=service.models.embedder_name, kind="embedding")]
    if service.models.reranker is not None:
        found.append(Model(id=service.models.reranker_name, kind="reranking"))
    return Models(data=found)


def _encode_vector(answer: EmbeddingAnswer, found: Iterable[Embedding]) -> str:
    """Write an answer vector by vector: in one piece it would hold up all other requests."""
    before, _, after = answer.model_dump_json().partition('"data":[]')
    vectors = ",".join([each.model_dump_json() for each in found])
    return f'{before}"data":[{vectors}]{after}'


def _encode(vector: FloatVector, encoding: str) -> list[float] | str:
    if encoding == "float":
        numbers: list[float] = vector.tolist()
        return numbers
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
