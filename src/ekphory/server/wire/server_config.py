"""What the server has and uses, as MemMachine's clients read it; it cannot be changed over HTTP."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class Resource(BaseModel):
    """A model or database that is ready."""

    name: str
    provider: str
    status: Literal["ready"] = "ready"
    error: str | None = None


class Resources(BaseModel):
    """All that the server has."""

    embedders: list[Resource]
    language_models: list[Resource]
    rerankers: list[Resource]
    databases: list[Resource]


class LongTermConfig(BaseModel):
    """What long-term memory uses."""

    embedder: str
    reranker: str | None
    enabled: bool = True


class ShortTermConfig(BaseModel):
    """What short-term memory uses."""

    llm_model: str | None = None
    message_capacity: int
    enabled: bool = True


class EpisodicMemoryConfig(BaseModel):
    """What episodic memory uses."""

    long_term_memory: LongTermConfig
    short_term_memory: ShortTermConfig
    enabled: bool = True


class SemanticMemoryConfig(BaseModel):
    """What semantic memory uses."""

    enabled: bool = True
    database: str | None = None
    llm_model: str | None = None
    embedding_model: str


class ServerConfig(BaseModel):
    """All of it."""

    resources: Resources
    episodic_memory: EpisodicMemoryConfig
    semantic_memory: SemanticMemoryConfig = Field(
        description="Without a language model (llm_model), features are set by callers alone."
    )
