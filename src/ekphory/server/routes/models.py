"""Reranking under the paths that its clients ask, embeddings as OpenAI and Cohere have them."""

from __future__ import annotations

import base64
import json
import math
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, Response
from numpy.typing import NDArray
from pydantic import TypeAdapter

from ekphory.errors import InvalidInput
from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory.prompting.block import estimate_tokens
from ekphory.server.errors import TooLarge
from ekphory.server.options import Limits
from ekphory.server.routes.context import MAY_READ, MODEL_REFUSALS, TheLimits, TheService
from ekphory.server.schemas.models import (
    CohereEmbeddingAnswer,
    CohereEmbeddingRequest,
    Embedding,
    EmbeddingAnswer,
    EmbeddingRequest,
    EmbeddingType,
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
from ekphory.service.handles import ServiceModels, shorten_vectors
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

embeddings_router = APIRouter(tags=["Embeddings"], responses=MODEL_REFUSALS)


@embeddings_router.post("/v1/embeddings", dependencies=MAY_READ, response_model=EmbeddingAnswer)
def embed(request: EmbeddingRequest, service: TheService, limits: TheLimits) -> Response:
    """Embed texts; the answer says what they were embedded as."""
    vectors = _embed(request, service.models, limits)
    tokens = sum(map(estimate_tokens, request.texts))
    answer = EmbeddingAnswer(
        data=[],
        model=service.models.embedder_name,
        usage=Usage(prompt_tokens=tokens, total_tokens=tokens),
        input_type=request.purpose,
    )
    found = (
        Embedding(index=place, embedding=_encode(vector, request.encoding_format))
        for place, vector in enumerate(vectors)
    )
    return Response(_encode_vector(answer, found), media_type="application/json")


@embeddings_router.post("/v2/embed", dependencies=MAY_READ, response_model=CohereEmbeddingAnswer)
def embed_by_type(
    request: CohereEmbeddingRequest, service: TheService, limits: TheLimits
) -> Response:
    """Embed texts, as numbers of each type that is asked for."""
    vectors = _embed(request, service.models, limits)
    answer = CohereEmbeddingAnswer(id=uuid.uuid4().hex, embeddings={}, texts=request.texts)
    before, _, after = answer.model_dump_json().partition('"embeddings":{}')
    written = [
        f'"{name}":[{",".join([json.dumps(_TYPED[name](vector)) for vector in vectors])}]'
        for name in dict.fromkeys(request.embedding_types)
    ]
    whole = f'{before}"embeddings":{{{",".join(written)}}}{after}'
    return Response(whole, media_type="application/json")


def _embed(
    request: EmbeddingRequest | CohereEmbeddingRequest, models: ServiceModels, limits: Limits
) -> FloatVector:
    count, there = len(request.texts), models.embedder.identity.dimension
    if count > limits.batch:
        raise TooLarge(f"{count:,} texts are more than {limits.batch:,}. Send less at a time.")
    wanted = request.dimensions or there
    if wanted > there:
        raise InvalidInput("dimensions", wanted, f"the model has {there}", "Give as many at most")
    vectors = models.embed(request.texts, request.purpose)
    return vectors if wanted == there else shorten_vectors(vectors, wanted)


@embeddings_router.get("/v1/models", dependencies=MAY_READ)
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


def _encode(vector: FloatVector, encoding: Literal["float", "base64"]) -> list[float] | str:
    encoded: list[float] | str = _TYPED[encoding](vector)
    return encoded


def _to_base64(vector: FloatVector) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


def _to_steps(vector: FloatVector) -> NDArray[np.int16]:
    return np.rint(vector * 127).astype(np.int16)


def _to_bits(vector: FloatVector) -> NDArray[np.int16]:
    return np.packbits(vector > 0).astype(np.int16)


_TYPED: Mapping[EmbeddingType, Callable[[FloatVector], Any]] = {
    "float": lambda vector: vector.tolist(),
    "int8": lambda vector: _to_steps(vector).tolist(),
    "uint8": lambda vector: (_to_steps(vector) + 128).tolist(),
    "binary": lambda vector: (_to_bits(vector) - 128).tolist(),
    "ubinary": lambda vector: _to_bits(vector).tolist(),
    "base64": _to_base64,
}
"""How a vector of length 1 is written as each type."""
