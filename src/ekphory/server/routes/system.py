"""What the server has and uses; health, metrics, and the description of all this."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from openapi_ui_bundles import swagger_ui
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field

from ekphory import __version__
from ekphory.server.request_log import ASSETS
from ekphory.server.routes.context import MAY_READ, REFUSALS, TheMetrics, TheService
from ekphory.service.episodes import SHORT_TERM_EPISODES
from ekphory.service.handles import ServiceModels

# What the server has and uses, as MemMachine's clients read it; it cannot be changed over HTTP.


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


server_config_router = APIRouter(
    prefix="/api/v2/config", tags=["Server configuration"], responses=REFUSALS
)


@server_config_router.get("", dependencies=MAY_READ)
def get_config(service: TheService) -> ServerConfig:
    """Read all of it."""
    return _server_config(service.models)


@server_config_router.get("/resources", dependencies=MAY_READ)
def get_resources(service: TheService) -> Resources:
    """Read which models and databases there are."""
    return _server_config(service.models).resources


@server_config_router.get("/memory/episodic", dependencies=MAY_READ)
def get_episodic(service: TheService) -> EpisodicMemoryConfig:
    """Read what episodic memory uses."""
    return _server_config(service.models).episodic_memory


@server_config_router.get("/memory/episodic/long_term", dependencies=MAY_READ)
def get_long_term(service: TheService) -> LongTermConfig:
    """Read what long-term memory uses."""
    return _server_config(service.models).episodic_memory.long_term_memory


@server_config_router.get("/memory/episodic/short_term", dependencies=MAY_READ)
def get_short_term(service: TheService) -> ShortTermConfig:
    """Read what short-term memory uses."""
    return _server_config(service.models).episodic_memory.short_term_memory


@server_config_router.get("/memory/semantic", dependencies=MAY_READ)
def get_semantic(service: TheService) -> SemanticMemoryConfig:
    """Read what semantic memory uses."""
    return _server_config(service.models).semantic_memory


def _server_config(models: ServiceModels) -> ServerConfig:
    embedder, reranker = models.embedder_name, models.reranker_name
    chat = models.chat.name if models.chat else ""
    return ServerConfig(
        resources=Resources(
            embedders=_list_model(embedder),
            language_models=_list_model(chat),
            rerankers=_list_model(reranker),
            databases=[Resource(name="lancedb", provider="lancedb")],
        ),
        episodic_memory=EpisodicMemoryConfig(
            long_term_memory=LongTermConfig(embedder=embedder, reranker=reranker or None),
            short_term_memory=ShortTermConfig(message_capacity=SHORT_TERM_EPISODES),
        ),
        semantic_memory=SemanticMemoryConfig(
            database="lancedb", embedding_model=embedder, llm_model=chat or None
        ),
    )


def _list_model(name: str) -> list[Resource]:
    return [Resource(name=name, provider="ekphory")] if name else []


# Health, metrics, and the description of all this.

system_router = APIRouter(tags=["System"])


@system_router.get("/health")
@system_router.get("/api/v2/health")
def health(service: TheService) -> dict[str, str]:
    """Say that the server answers, and whether the store's upkeep succeeds."""
    return {
        "status": "healthy",
        "service": "ekphory",
        "version": __version__,
        "upkeep": "failing" if service.upkeep_fails() else "healthy",
    }


@system_router.get("/metrics", response_class=Response, responses=REFUSALS, dependencies=MAY_READ)
@system_router.get(
    "/api/v2/metrics", response_class=Response, responses=REFUSALS, dependencies=MAY_READ
)
def metrics(measured: TheMetrics, service: TheService) -> Response:
    """Return counts and times of the process that answers, as Prometheus reads them."""
    measured.extraction(service.extraction.state())
    return Response(generate_latest(measured.registry), media_type=CONTENT_TYPE_LATEST)


@system_router.get("/docs", include_in_schema=False)
def docs(request: Request) -> HTMLResponse:
    """Show the description of the API; all that the page needs comes from this server."""
    return get_swagger_ui_html(
        openapi_url=str(request.app.openapi_url),
        title=request.app.title,
        swagger_js_url=f"{ASSETS}swagger-ui-bundle.js",
        swagger_css_url=f"{ASSETS}swagger-ui.css",
        swagger_favicon_url=f"{ASSETS}favicon-32x32.png",
    )


def docs_assets() -> StaticFiles:
    """Return the files of the page."""
    return StaticFiles(directory=Path(swagger_ui.static_path))
