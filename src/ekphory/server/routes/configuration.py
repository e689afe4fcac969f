"""What the server uses, as MemMachine's clients read and change it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from pydantic import BaseModel, Field

from ekphory.catalog.projects import EpisodicSwitches
from ekphory.server.routes import context
from ekphory.server.schemas.names import Asked, Wire
from ekphory.service.configuration import (
    LEARNING_MODEL,
    RESOURCE_KINDS,
    SUMMARY_MODEL,
    Configuration,
    ResourceKind,
    ResourceState,
    ResourceStatus,
)
from ekphory.service.memory_service import MemoryService

# On the wire.


class Resources(BaseModel):
    """All models and databases that the server has."""

    embedders: list[ResourceState]
    language_models: list[ResourceState]
    rerankers: list[ResourceState]
    databases: list[ResourceState]


class LongTermConfig(BaseModel):
    """What long-term memory uses."""

    embedder: str
    reranker: str | None
    enabled: bool


class ShortTermConfig(BaseModel):
    """What short-term memory uses."""

    llm_model: str | None
    message_capacity: int
    enabled: bool


class EpisodicMemoryConfig(BaseModel):
    """What episodic memory uses."""

    long_term_memory: LongTermConfig
    short_term_memory: ShortTermConfig
    enabled: bool


class SemanticMemoryConfig(BaseModel):
    """What semantic memory uses."""

    enabled: bool
    database: str | None = None
    llm_model: str | None = None
    embedding_model: str


class ServerConfig(Wire):
    """All of it."""

    resources: Resources
    episodic_memory: EpisodicMemoryConfig
    semantic_memory: SemanticMemoryConfig
    """Without a language model (llm_model), features are set by callers alone."""


class _Update(Asked):
    """What is left out, or null, stays; an empty name lets the server choose."""


class UpdateLongTerm(_Update):
    """Changes of what long-term memory uses."""

    embedder: str | None = None
    """Of projects that are made from now on."""

    reranker: str | None = None
    enabled: bool | None = None


class UpdateShortTerm(_Update):
    """Changes of what short-term memory uses."""

    llm_model: str | None = None
    message_capacity: Annotated[int | None, Field(gt=0)] = None
    enabled: bool | None = None


class UpdateEpisodic(_Update):
    """Changes of what episodic memory uses."""

    long_term_memory: UpdateLongTerm | None = None
    short_term_memory: UpdateShortTerm | None = None
    long_term_memory_enabled: bool | None = None
    short_term_memory_enabled: bool | None = None
    enabled: bool | None = None


class UpdateSemantic(_Update):
    """Changes of what semantic memory uses."""

    enabled: bool | None = None
    llm_model: str | None = None
    embedding_model: str | None = None
    """Of sets that are made from now on."""

    ingestion_trigger_messages: Annotated[int | None, Field(gt=0)] = None
    ingestion_trigger_age_seconds: Annotated[int | None, Field(gt=0)] = None


class UpdateMemory(_Update):
    """Changes of both."""

    episodic_memory: UpdateEpisodic | None = None
    semantic_memory: UpdateSemantic | None = None


class AddResource(Asked):
    """A model to be declared, as `resources` in the configuration file has it."""

    name: str
    provider: str
    config: dict[str, Any] = Field(default_factory=dict)


class Done(BaseModel):
    """A change was made."""

    success: bool = True
    message: str


class ResourceTried(BaseModel):
    """What became of a model that was declared or tried anew."""

    success: bool
    status: ResourceStatus
    error: str | None = None


# The paths.


def _unbound(session: context.ToAdminister) -> context.RouteSession:
    """Return a session whose key reaches every project, as what is changed here does.

    Raises:
        NotPermitted: It is bound.
    """
    session.caller.check_unbound()
    return session


server_config_router = APIRouter(
    prefix="/api/v2/config", tags=["Server configuration"], responses=context.REFUSALS
)
ToChange = Annotated[context.RouteSession, Depends(_unbound)]
Kind = Annotated[ResourceKind, Path(description="Kind of model.")]


@server_config_router.get("")
def get_config(session: context.ToRead) -> ServerConfig:
    """Read all of it."""
    return ServerConfig(
        resources=_resources(session),
        episodic_memory=_episodic(session.service),
        semantic_memory=_semantic(session.service),
    )


@server_config_router.get("/resources")
def get_resources(session: context.ToRead) -> Resources:
    """Read which models and databases there are."""
    return _resources(session)


@server_config_router.get("/memory/episodic")
def get_episodic(session: context.ToRead) -> EpisodicMemoryConfig:
    """Read what episodic memory uses."""
    return _episodic(session.service)


@server_config_router.get("/memory/episodic/long_term")
def get_long_term(session: context.ToRead) -> LongTermConfig:
    """Read what long-term memory uses."""
    return _episodic(session.service).long_term_memory


@server_config_router.get("/memory/episodic/short_term")
def get_short_term(session: context.ToRead) -> ShortTermConfig:
    """Read what short-term memory uses."""
    return _episodic(session.service).short_term_memory


@server_config_router.get("/memory/semantic")
def get_semantic(session: context.ToRead) -> SemanticMemoryConfig:
    """Read what semantic memory uses."""
    return _semantic(session.service)


@server_config_router.put("/memory")
def update_memory(request: UpdateMemory, session: ToChange) -> Done:
    """Change what memory uses, for all projects."""
    return _change(session.service.configuration, request)


@server_config_router.put("/memory/episodic")
def update_episodic(request: UpdateEpisodic, session: ToChange) -> Done:
    """Change what episodic memory uses."""
    return _change(session.service.configuration, UpdateMemory(episodic_memory=request))


@server_config_router.put("/memory/episodic/long_term")
def update_long_term(request: UpdateLongTerm, session: ToChange) -> Done:
    """Change what long-term memory uses."""
    return update_episodic(UpdateEpisodic(long_term_memory=request), session)


@server_config_router.put("/memory/episodic/short_term")
def update_short_term(request: UpdateShortTerm, session: ToChange) -> Done:
    """Change what short-term memory uses."""
    return update_episodic(UpdateEpisodic(short_term_memory=request), session)


@server_config_router.put("/memory/semantic")
def update_semantic(request: UpdateSemantic, session: ToChange) -> Done:
    """Change what semantic memory uses."""
    return _change(session.service.configuration, UpdateMemory(semantic_memory=request))


@server_config_router.post("/resources/{kind}", status_code=201)
def add_resource(kind: Kind, request: AddResource, session: ToChange) -> ResourceTried:
    """Declare a model, and try it; one that cannot be loaded is kept, and told with the reason."""
    config = {name: value for name, value in request.config.items() if value is not None}
    put = session.service.configuration.put_resource
    return _tried(put(kind, request.name, request.provider, config))


@server_config_router.post("/resources/{kind}/{name:path}/retry", responses=context.NOT_THERE)
def retry_resource(kind: Kind, name: str, session: ToChange) -> ResourceTried:
    """Load a model anew."""
    return _tried(session.service.configuration.try_resource(kind, name))


@server_config_router.delete("/resources/{kind}/{name:path}", responses=context.NOT_THERE)
def delete_resource(kind: Kind, name: str, session: ToChange) -> Done:
    """Take a model out that nothing uses."""
    session.service.configuration.delete_resource(kind, name)
    return Done(message=f"{name} was taken out.")


def _resources(session: context.RouteSession) -> Resources:
    found = {kind: session.service.configuration.states(kind) for kind in RESOURCE_KINDS}
    if session.caller.org is not None or not session.caller.may("admin"):
        # Why a model cannot be loaded may name paths and addresses.
        found = {kind: [replace(each, error=None) for each in own] for kind, own in found.items()}
    return Resources(**found, databases=[ResourceState("lancedb", "lancedb")])


def _episodic(service: MemoryService) -> EpisodicMemoryConfig:
    configuration, models = service.configuration, service.models
    value, chat = configuration.value, models.chat.name if models.chat else None
    switches = configuration.episodic(EpisodicSwitches())
    long_term = ("episodic_memory", "long_term_memory")
    return EpisodicMemoryConfig(
        enabled=switches.enabled,
        long_term_memory=LongTermConfig(
            embedder=value(*long_term, "embedder") or models.embedder_name,
            reranker=configuration.reranker_name() or None,
            enabled=switches.long_term,
        ),
        short_term_memory=ShortTermConfig(
            llm_model=value(*SUMMARY_MODEL) or chat,
            message_capacity=configuration.short_term_episodes(),
            enabled=switches.short_term,
        ),
    )


def _semantic(service: MemoryService) -> SemanticMemoryConfig:
    configuration, models = service.configuration, service.models
    value, chat = configuration.value, models.chat.name if models.chat else None
    return SemanticMemoryConfig(
        enabled=configuration.has_semantic(),
        database="lancedb",
        embedding_model=value("semantic_memory", "embedding_model") or models.embedder_name,
        llm_model=value(*LEARNING_MODEL) or chat,
    )


def _change(configuration: Configuration, request: UpdateMemory) -> Done:
    """Set what a request names, under the names of the configuration file."""
    changes = request.model_dump(exclude_none=True)
    episodic, semantic = changes.get("episodic_memory", {}), changes.get("semantic_memory", {})
    for part in ("long_term_memory", "short_term_memory"):
        if "enabled" in episodic.get(part, {}):
            episodic[f"{part}_enabled"] = episodic[part].pop("enabled")
    if "ingestion_trigger_age_seconds" in semantic:
        semantic["ingestion_trigger_age"] = semantic.pop("ingestion_trigger_age_seconds")
    configuration.change(changes)
    return Done(message="The configuration was changed.")


def _tried(state: ResourceState) -> ResourceTried:
    return ResourceTried(success=state.status == "ready", status=state.status, error=state.error)
