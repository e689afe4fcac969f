"""Embeddings and models, as OpenAI has them."""

from __future__ import annotations

import base64
from collections.abc import Iterable

import numpy as np
from fastapi import APIRouter, Response
from numpy.typing import NDArray

from ekphory.errors import InvalidInput
from ekphory.server.errors import TooLarge
from ekphory.server.routes.context import MAY_READ, MODEL_REFUSALS, TheLimits, TheService
from ekphory.server.wire.embeddings import (
    Embedding,
    EmbeddingAnswer,
    EmbeddingRequest,
    Model,
    Models,
)
from ekphory.server.wire.rerank import Usage
from ekphory.service.model_verbs import shortened

FloatVector = NDArray[np.float32]

router = APIRouter(prefix="/v1", tags=["Embeddings"], responses=MODEL_REFUSALS)


@router.post("/embeddings", dependencies=MAY_READ, response_model=EmbeddingAnswer)
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
    vectors = service.models_alone.embed(texts, request.purpose)
    if wanted < identity.dimension:
        vectors = shortened(vectors, wanted)
    tokens = service.models_alone.tokens(texts)
    answer = EmbeddingAnswer(
        data=[],
        model=identity.name,
        usage=Usage(prompt_tokens=tokens, total_tokens=tokens),
        input_type=request.purpose,
    )
    found = (
        Embedding(index=place, embedding=_encoded(vector, request.encoding_format))
        for place, vector in enumerate(vectors)
    )
    return Response(_written(answer, found), media_type="application/json")


@router.get("/models", dependencies=MAY_READ)
def list_models(service: TheService) -> Models:
    """List the models that the server has."""
    found = [Model(id=service.models.embedder_name, kind="embedding")]
    if service.models.reranker is not None:
        found.append(Model(id=service.models.reranker_name, kind="reranking"))
    return Models(data=found)


def _written(answer: EmbeddingAnswer, found: Iterable[Embedding]) -> str:
    """Write an answer vector by vector: in one piece it would hold up all other requests."""
    before, _, after = answer.model_dump_json().partition('"data":[]')
    vectors = ",".join([each.model_dump_json() for each in found])
    return f'{before}"data":[{vectors}]{after}'


def _encoded(vector: FloatVector, encoding: str) -> list[float] | str:
    if encoding == "float":
        numbers: list[float] = vector.tolist()
        return numbers
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
