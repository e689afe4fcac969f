"""What the server has and uses; read only."""

from __future__ import annotations

from fastapi import APIRouter

from ekphory.server.routes.context import MAY_READ, REFUSALS, TheService
from ekphory.server.wire.server_config import (
    EpisodicMemoryConfig,
    LongTermConfig,
    Resource,
    Resources,
    SemanticMemoryConfig,
    ServerConfig,
    ShortTermConfig,
)
from ekphory.service.episodes import SHORT_TERM_EPISODES
from ekphory.service.models import ServiceModels

router = APIRouter(prefix="/api/v2/config", tags=["Server configuration"], responses=REFUSALS)
_PROVIDER = "ekphory"


@router.get("", dependencies=MAY_READ)
def get_config(service: TheService) -> ServerConfig:
    """Read all of it."""
    return ServerConfig(
        resources=_resources(service.models),
        episodic_memory=_episodic(service.models),
        semantic_memory=_semantic(service.models),
    )


@router.get("/resources", dependencies=MAY_READ)
def get_resources(service: TheService) -> Resources:
    """Read which models and databases there are."""
    return _resources(service.models)


@router.get("/memory/episodic", dependencies=MAY_READ)
def get_episodic(service: TheService) -> EpisodicMemoryConfig:
    """Read what episodic memory uses."""
    return _episodic(service.models)


@router.get("/memory/episodic/long_term", dependencies=MAY_READ)
def get_long_term(service: TheService) -> LongTermConfig:
    """Read what long-term memory uses."""
    return _episodic(service.models).long_term_memory


@router.get("/memory/episodic/short_term", dependencies=MAY_READ)
def get_short_term(service: TheService) -> ShortTermConfig:
    """Read what short-term memory uses."""
    return _episodic(service.models).short_term_memory


@router.get("/memory/semantic", dependencies=MAY_READ)
def get_semantic(service: TheService) -> SemanticMemoryConfig:
    """Read what semantic memory uses."""
    return _semantic(service.models)


def _resources(models: ServiceModels) -> Resources:
    return Resources(
        embedders=_named(models.embedder_name),
        language_models=_named(models.chat.name if models.chat else ""),
        rerankers=_named(models.reranker_name),
        databases=[Resource(name="lancedb", provider="lancedb")],
    )


def _episodic(models: ServiceModels) -> EpisodicMemoryConfig:
    return EpisodicMemoryConfig(
        long_term_memory=LongTermConfig(
            embedder=models.embedder_name, reranker=models.reranker_name or None
        ),
        short_term_memory=ShortTermConfig(message_capacity=SHORT_TERM_EPISODES),
    )


def _semantic(models: ServiceModels) -> SemanticMemoryConfig:
    return SemanticMemoryConfig(
        database="lancedb",
        embedding_model=models.embedder_name,
        llm_model=models.chat.name if models.chat else None,
    )


def _named(name: str) -> list[Resource]:
    return [Resource(name=name, provider=_PROVIDER)] if name else []
