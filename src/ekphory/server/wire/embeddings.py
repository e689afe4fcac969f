"""Embeddings and models on the wire, as OpenAI has them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from ekphory.server.wire.rerank import Text, Usage
from ekphory.service.model_verbs import Purpose

_PURPOSES: dict[str, Purpose] = {
    **dict.fromkeys(("query", "search_query", "web_search_query"), "query"),
    **dict.fromkeys(("document", "passage", "search_document", "text"), "passage"),
}
_LARGEST_TOKEN = 2**31
_MOST_TEXTS = 20_000
InputType = Literal[
    "query", "search_query", "web_search_query", "document", "passage", "search_document", "text"
]


class EmbeddingRequest(BaseModel):
    """Texts to be embedded."""

    input: Annotated[
        Text | Annotated[list[Text], Field(min_length=1, max_length=_MOST_TEXTS, fail_fast=True)],
        Field(description="A text or several.", examples=[["I prefer tea"]]),
    ]
    model: str | None = Field(default=None, description="Any name; the server has one model.")
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1, le=_LARGEST_TOKEN)] | None = Field(
        default=None, description="Keep so many components, and make them of length 1 again."
    )
    user: str | None = None
    input_type: InputType | None = Field(
        default=None, description="What the texts are; a passage where nothing is said."
    )
    prompt_name: InputType | None = Field(default=None, description="The same, as TEI calls it.")

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
