"""Reranking under the paths that its clients ask, embeddings as OpenAI and Cohere have them."""

from __future__ import annotations

import base64
import json
import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
from fastapi import APIRouter, Response
from numpy.typing import NDArray
from pydantic import AliasChoices, BaseModel, Field, TypeAdapter, field_validator, model_validator

from ekphory.errors import InvalidInput
from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory.prompting.block import estimate_tokens
from ekphory.server.errors import TooLarge
from ekphory.server.routes.context import MODEL_REFUSALS, RouteSession, ToRead
from ekphory.server.schemas.names import Moment, Wire
from ekphory.service.handles import Purpose, shorten_vectors
from ekphory.types import MemoryType, now_utc

# Reranking on the wire: what Cohere, Jina, vLLM, Infinity, TEI and Memos have, in one.

_LONGEST = 1_000_000
_MOST_DOCUMENTS = 20_000
"""More than any server takes; a server's own limit is in its options."""
_MOST_TURNS = 1_000
Text = Annotated[str, Field(max_length=_LONGEST)]


class Document(Wire):
    """A document, with what may be known of it."""

    text: Text
    before: Text | None = None
    """What was said before it."""

    after: Text | None = None
    """What was said after it."""

    at: Moment | None = Field(
        default=None, validation_alias=AliasChoices("at", "created_at", "timestamp")
    )
    """When it was said."""

    type: MemoryType | None = Field(
        default=None, validation_alias=AliasChoices("type", "memory_type")
    )

    @property
    def passage(self) -> RerankPassage:
        """Return it as a reranker gets it."""
        return RerankPassage(self.text, self.before, self.after, self.at, self.type)


class RerankRequest(Wire):
    """Documents to be ordered by how well they answer a query.

    `documents` as Cohere, Jina, vLLM, Infinity and Memos send them, or `texts` as TEI does.
    """

    query: Annotated[str, Field(min_length=1, max_length=_LONGEST, examples=["tea or coffee?"])]
    documents: list[Text | Document] | None = Field(
        default=None,
        max_length=_MOST_DOCUMENTS,
        fail_fast=True,
        examples=[["I drink tea", {"text": "It rained", "at": "2026-05-01"}]],
    )
    texts: list[Text] | None = Field(default=None, max_length=_MOST_DOCUMENTS, fail_fast=True)
    model: str | None = None
    """Any name; the server has one model."""

    top_n: Annotated[int, Field(ge=1)] | None = Field(
        default=None, validation_alias=AliasChoices("top_n", "top_k")
    )
    """How many results, at least 1; leave it out for all."""

    return_documents: bool = True
    return_text: bool = False
    """TEI: whether results carry the text."""

    raw_scores: bool = False
    """Log-odds in place of probabilities."""

    context: list[Text] = Field(default_factory=list, max_length=_MOST_TURNS, fail_fast=True)
    """The dialogue before the query."""

    now: Moment | None = None
    """The moment at which it is asked."""

    instruction: Text | None = None
    """What counts as relevant."""

    @model_validator(mode="after")
    def _has_documents(self) -> Self:
        if not self.documents and not self.texts:
            raise ValueError("give documents, or texts, at least one")
        if self.documents and self.texts:
            raise ValueError("give documents or texts, not both")
        return self

    @property
    def passages(self) -> list[RerankPassage]:
        """Return all documents as a reranker gets them."""
        given = self.documents or self.texts or []
        return [RerankPassage(each) if isinstance(each, str) else each.passage for each in given]


class ShownDocument(BaseModel):
    """A document in a result."""

    text: str


class RerankResult(BaseModel):
    """A document's place in the input, and how likely it answers."""

    index: int
    relevance_score: float
    document: ShownDocument | None = None


class Usage(BaseModel):
    """Tokens, estimated from above."""

    prompt_tokens: int
    total_tokens: int


class ApiVersion(BaseModel):
    """The version of Cohere's API."""

    version: Literal["2"] = "2"


class RerankMeta(BaseModel):
    """What Cohere's clients look for beside the results, or vectors."""

    api_version: ApiVersion = Field(default_factory=ApiVersion)


class RerankAnswer(BaseModel):
    """Documents, the likeliest first; equals in the order of the input."""

    id: str
    object: Literal["rerank"] = "rerank"
    created: int
    model: str
    results: list[RerankResult]
    usage: Usage
    meta: RerankMeta = Field(default_factory=RerankMeta)


class TeiResult(BaseModel):
    """A result as TEI gives it."""

    index: int
    score: float
    text: str | None = None


# Embeddings and models on the wire, as OpenAI has them.

_PURPOSES: dict[str, Purpose] = {
    **dict.fromkeys(("query", "search_query", "web_search_query"), "query"),
    **dict.fromkeys(("document", "passage", "search_document", "text"), "passage"),
}
_LARGEST_TOKEN = 2**31
_MOST_TEXTS = 20_000
InputType = Literal[
    "query", "search_query", "web_search_query", "document", "passage", "search_document", "text"
]


_NO_TOKENS = (
    "tokens must be texts. In LangChain: OpenAIEmbeddings(…, check_embedding_ctx_length=False)"
)


class EmbeddingRequest(Wire):
    """Texts to be embedded."""

    input: Annotated[
        Text | Annotated[list[Text], Field(min_length=1, max_length=_MOST_TEXTS, fail_fast=True)],
        Field(examples=[["I prefer tea"]]),
    ]
    """A text or several."""

    model: str | None = None
    """Any name; the server has one model."""

    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1, le=_LARGEST_TOKEN)] | None = None
    """Keep so many components, and make them of length 1 again."""

    user: str | None = None
    input_type: InputType | None = None
    """What the texts are; a passage where nothing is said."""

    prompt_name: InputType | None = None
    """The same, as TEI calls it."""

    @field_validator("input", mode="before")
    @classmethod
    def _refuse_tokens(cls, given: object) -> object:
        first = given[0] if isinstance(given, list) and given else None
        if isinstance(first, int | list):
            raise ValueError(_NO_TOKENS)
        return given

    @property
    def texts(self) -> list[str]:
        """All texts, in order."""
        return [self.input] if isinstance(self.input, str) else self.input

    @property
    def purpose(self) -> Purpose:
        """What the texts are embedded as."""
        return _PURPOSES[self.input_type or self.prompt_name or "passage"]


class Embedding(BaseModel):
    """The vector of one text: numbers, or the base64 of its 32-bit floats in little endian."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingAnswer(BaseModel):
    """The vectors, in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: Usage
    input_type: Purpose


# Embeddings on the wire, as Cohere has them.

EmbeddingType = Literal["float", "int8", "uint8", "binary", "ubinary", "base64"]


class CohereEmbeddingRequest(Wire):
    """Texts to be embedded."""

    texts: list[Text] = Field(
        min_length=1, max_length=_MOST_TEXTS, fail_fast=True, examples=[["I prefer tea"]]
    )
    model: str | None = None
    """Any name; the server has one model."""

    input_type: Literal["search_document", "search_query"]
    """What the texts are; the model knows no other kinds."""

    embedding_types: list[EmbeddingType] = Field(default=["float"], min_length=1, max_length=6)
    dimensions: Annotated[int, Field(ge=1, le=_LARGEST_TOKEN)] | None = Field(
        default=None, validation_alias="output_dimension"
    )
    """Keep so many components, and make them of length 1 again."""

    truncate: Literal["NONE", "START", "END"] | None = None
    """Of a document nothing is left out, whatever this says."""

    images: None = None
    inputs: None = None
    max_tokens: None = None

    @field_validator("images", "inputs", "max_tokens", mode="before")
    @classmethod
    def _is_left_out(cls, given: object) -> None:
        if given is not None:
            raise ValueError("leave it out: texts are embedded, nothing else, and whole")

    @property
    def purpose(self) -> Purpose:
        """What the texts are embedded as."""
        return _PURPOSES[self.input_type]


class CohereEmbeddingAnswer(BaseModel):
    """The vectors of each type that was asked for, in the order of the texts.

    `int8` is each component times 127, `uint8` that plus 128; `ubinary` has a bit for each
    component that is above 0, eight in a number, and `binary` is that minus 128.
    """

    id: str
    response_type: Literal["embeddings_by_type"] = "embeddings_by_type"
    embeddings: dict[EmbeddingType, list[list[float] | list[int] | str]]
    texts: list[str]
    meta: RerankMeta = Field(default_factory=RerankMeta)


class Model(BaseModel):
    """A model that the server has."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: Literal["ekphory"] = "ekphory"
    kind: Literal["embedding", "reranking"]


class Models(BaseModel):
    """The models that the server has."""

    object: Literal["list"] = "list"
    data: list[Model]


# The endpoints.

# Reranking: one endpoint under the paths that its many clients ask.

rerank_router = APIRouter(tags=["Reranking"], responses=MODEL_REFUSALS)
RerankAnswers = RerankAnswer | list[TeiResult]
_ANSWERS: TypeAdapter[RerankAnswers] = TypeAdapter(RerankAnswers)
_NEARLY = 1e-7
"""Log-odds are those of a probability at least so far from 0 and 1, so that they are finite."""


@rerank_router.post("/rerank", response_model=RerankAnswers)
@rerank_router.post("/v1/rerank", response_model=RerankAnswers)
@rerank_router.post("/v2/rerank", response_model=RerankAnswers)
@rerank_router.post("/api/openmem/v1/rerank", response_model=RerankAnswers)
def rerank(request: RerankRequest, session: ToRead) -> Response:
    """Order documents by how well they answer a query; with `texts` the answer is TEI's."""
    passages = request.passages
    _check_number(passages, session.limits.documents, "documents")
    query = RerankQuery(request.query, tuple(request.context), request.now, request.instruction)
    models = session.service.ranking_models()
    scores = models.rerank(query, passages)
    order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    best = [(place, _scale(scores[place], request)) for place in order[: request.top_n or None]]
    texts = [each.text for each in passages]
    if request.texts:
        return _write_answer(
            [
                TeiResult(
                    index=place, score=score, text=texts[place] if request.return_text else None
                )
                for place, score in best
            ]
        )
    shows = request.return_documents
    tokens = sum(map(estimate_tokens, (query.text, *texts)))
    answer = RerankAnswer(
        id=uuid.uuid4().hex,
        created=int(now_utc().timestamp()),
        model=models.reranker_name,
        results=[
            RerankResult(
                index=place,
                relevance_score=score,
                document=ShownDocument(text=texts[place]) if shows else None,
            )
            for place, score in best
        ],
        usage=Usage(prompt_tokens=tokens, total_tokens=tokens),
    )
    return _write_answer(answer)


def _check_number(given: Sequence[object], most: int, what: str) -> None:
    if len(given) > most:
        raise TooLarge(f"{len(given):,} {what} are more than {most:,}. Send less at a time.")


def _write_answer(answer: RerankAnswers) -> Response:
    """Write an answer here, in a thread of its own: FastAPI would write it where all wait."""
    return Response(_ANSWERS.dump_json(answer, exclude_none=True), media_type="application/json")


def _scale(score: float, request: RerankRequest) -> float:
    if not request.raw_scores:
        return score
    inside = min(max(score, _NEARLY), 1 - _NEARLY)
    return math.log(inside / (1 - inside))


# Embeddings and models, as OpenAI has them.

FloatVector = NDArray[np.float32]

embeddings_router = APIRouter(tags=["Embeddings"], responses=MODEL_REFUSALS)


@embeddings_router.post("/v1/embeddings", response_model=EmbeddingAnswer)
def embed(request: EmbeddingRequest, session: ToRead) -> Response:
    """Embed texts; the answer says what they were embedded as."""
    vectors = _embed(request, session)
    tokens = sum(map(estimate_tokens, request.texts))
    answer = EmbeddingAnswer(
        data=[],
        model=session.service.models.embedder_name,
        usage=Usage(prompt_tokens=tokens, total_tokens=tokens),
        input_type=request.purpose,
    )
    found = (
        Embedding(index=place, embedding=_TYPED[request.encoding_format](vector))
        for place, vector in enumerate(vectors)
    )
    return Response(_encode_vector(answer, found), media_type="application/json")


@embeddings_router.post("/v2/embed", response_model=CohereEmbeddingAnswer)
def embed_by_type(request: CohereEmbeddingRequest, session: ToRead) -> Response:
    """Embed texts, as numbers of each type that is asked for."""
    vectors = _embed(request, session)
    answer = CohereEmbeddingAnswer(id=uuid.uuid4().hex, embeddings={}, texts=request.texts)
    before, _, after = answer.model_dump_json().partition('"embeddings":{}')
    written = [
        f'"{name}":[{",".join([json.dumps(_TYPED[name](vector)) for vector in vectors])}]'
        for name in dict.fromkeys(request.embedding_types)
    ]
    whole = f'{before}"embeddings":{{{",".join(written)}}}{after}'
    return Response(whole, media_type="application/json")


def _embed(
    request: EmbeddingRequest | CohereEmbeddingRequest, session: RouteSession
) -> FloatVector:
    models = session.service.models
    there = models.embedder.identity.dimension
    _check_number(request.texts, session.limits.batch, "texts")
    wanted = request.dimensions or there
    if wanted > there:
        raise InvalidInput("dimensions", wanted, f"the model has {there}", "Give as many at most")
    vectors = models.embed(request.texts, request.purpose)
    return vectors if wanted == there else shorten_vectors(vectors, wanted)


@embeddings_router.get("/v1/models")
def list_models(session: ToRead) -> Models:
    """List the models that the server has."""
    models = session.service.ranking_models()
    found = [Model(id=models.embedder_name, kind="embedding")]
    if models.reranker is not None:
        found.append(Model(id=models.reranker_name, kind="reranking"))
    return Models(data=found)


def _encode_vector(answer: EmbeddingAnswer, found: Iterable[Embedding]) -> str:
    """Write an answer vector by vector: in one piece it would hold up all other requests."""
    before, _, after = answer.model_dump_json().partition('"data":[]')
    vectors = ",".join([each.model_dump_json() for each in found])
    return f'{before}"data":[{vectors}]{after}'


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
    "base64": lambda vector: base64.b64encode(vector.astype("<f4").tobytes()).decode(),
}
"""How a vector of length 1 is written as each type."""
