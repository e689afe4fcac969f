"""Memories and projects: added, searched, listed, deleted, configured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Response

from ekphory.catalog.database import NotThere
from ekphory.catalog.projects import EpisodicSwitches, Project
from ekphory.server.routes.context import (
    ALREADY_THERE,
    NOT_THERE,
    REFUSALS,
    TheAdmin,
    TheMetrics,
    TheReader,
    TheService,
    TheWriter,
    existing_place,
)
from ekphory.server.schemas.memories import (
    AddedMemories,
    AddedMemory,
    AddMemories,
    ConfigureEpisodic,
    ConfigurePart,
    CreateProject,
    DeleteEpisodes,
    DeleteFeatures,
    EpisodeCount,
    EpisodicConfig,
    ListAnswer,
    ListContent,
    ListMemories,
    PartConfig,
    ProjectAnswer,
    ProjectConfig,
    ProjectName,
    SearchAnswer,
    SearchContent,
    SearchMemories,
    cited_features,
    found_episodes,
    listed_episodes,
)
from ekphory.server.schemas.names import InProject
from ekphory.service.episodes import EpisodeMessage as Said
from ekphory.service.episodes import EpisodeQuery
from ekphory.service.handles import Place
from ekphory.service.memory_service import KINDS, MemoryService, SearchFindings

TRACE_ID = "X-Trace-ID"
TraceWanted = Annotated[
    bool, Header(alias="X-Retrieval-Trace", description="As the field retrieval_trace.")
]
memories_router = APIRouter(prefix="/api/v2", tags=["Memories"], responses=REFUSALS)


@memories_router.post("/memories")
def add_memories(
    request: AddMemories, service: TheService, caller: TheWriter, metrics: TheMetrics
) -> AddedMemories:
    """Remember messages; on return they are durable. Makes the project, if need be."""
    place = caller.place_of(request, "write")
    service.ensure_project(place)
    kinds = set(request.types)
    ids = service.episodes.add(
        place,
        [
            Said(at=message.timestamp, **message.model_dump(exclude={"timestamp", "episode_type"}))
            for message in request.messages
        ],
        # Said to be of one kind only; else the embedder predicts it.
        kind=request.types[0] if len(kinds) == 1 else None,
    )
    metrics.added.inc(len(ids))
    if not kinds or "semantic" in kinds:
        service.extraction.learn_from(place, ids)
    return AddedMemories(results=[AddedMemory(uid=each) for each in service.uids.shown(place, ids)])


@memories_router.post("/memories/search", response_model=SearchAnswer, responses=NOT_THERE)
def search_memories(
    request: SearchMemories,
    service: TheService,
    caller: TheReader,
    metrics: TheMetrics,
    trace_wanted: TraceWanted = False,
) -> Response:
    """Find what answers a question. The header X-Trace-ID names the trace of the search."""
    place = existing_place(request, service, caller)
    threshold = request.score_threshold
    query = EpisodeQuery(
        text=request.query,
        limit=request.top_k,
        filter=request.filter,
        # Clients of rerankers with open scales send thresholds outside [0, 1].
        min_score=None if threshold is None or threshold <= 0 else min(threshold, 1.0),
        expand=request.expand_context,
        agent_mode=request.agent_mode,
    )
    found = service.search(
        place, query, kinds=request.types or KINDS, set_metadata=request.set_metadata
    )
    for search in found.trace["searches"]:
        for stage in search["stages"]:
            metrics.stage(stage["name"], stage["milliseconds"])
    content = SearchContent()
    if found.episodes is not None:
        content.episodic_memory = found_episodes(found.episodes, place, service.uids)
    if found.features is not None:
        content.semantic_memory = cited_features(found.features, place, service.uids)
    if request.retrieval_trace or trace_wanted:
        content.retrieval_trace = dict(found.trace)
    answer = SearchAnswer(content=content, hint=_hint(service, place, found))
    return _write_answer(answer, {TRACE_ID: found.trace["trace_id"]})


@memories_router.post("/memories/list", response_model=ListAnswer, responses=NOT_THERE)
def list_memories(request: ListMemories, service: TheService, caller: TheReader) -> Response:
    """List a page of episodes in the order in which they were said, and of features."""
    place = existing_place(request, service, caller)
    kinds = KINDS if request.type is None else (request.type,)
    limit, offset = request.page_size, request.page_size * request.page_num
    content = ListContent()
    if "episodic" in kinds:
        records = service.episodes.page(place, request.filter, limit=limit, offset=offset)
        content.episodic_memory = listed_episodes(records, place, service.uids)
    if "semantic" in kinds:
        features = service.features.page(
            place,
            limit=limit,
            offset=offset,
            condition=request.filter,
            set_metadata=request.set_metadata,
        )
        content.semantic_memory = cited_features(features, place, service.uids)
    return _write_answer(ListAnswer(content=content))


@memories_router.post(
    "/memories/episodic/delete", status_code=204, responses=NOT_THERE, response_class=Response
)
def delete_episodic(request: DeleteEpisodes, service: TheService, caller: TheWriter) -> None:
    """Forget episodes: all that are named, or none where one of them is not there."""
    place = caller.place_of(request, "write")
    service.episodes.delete(place, service.uids.stored(place, request.episodic_ids))
    service.ensure_project(place)  # it stays when its last memory goes


@memories_router.post(
    "/memories/semantic/delete", status_code=204, responses=NOT_THERE, response_class=Response
)
def delete_semantic(request: DeleteFeatures, service: TheService, caller: TheWriter) -> None:
    """Forget features: all that are named, or none where one of them is not there."""
    service.features.delete(caller.place_of(request, "write"), request.semantic_ids)


@memories_router.get("/traces/{trace_id}", responses=NOT_THERE)
def get_trace(
    trace_id: Annotated[str, Path(max_length=100)], service: TheService, caller: TheReader
) -> dict[str, Any]:
    """Read what an earlier search did."""
    found = service.trace(trace_id)
    if not caller.may_see(found.org, found.project):
        # Told like one that is not there, so that nobody learns of other projects.
        raise NotThere("Trace does not exist")
    names = {"org_id": found.org, "project_id": found.project, "created_at": found.created_at}
    return {**names, **found.content}


_NOTHING_YET = (
    "This project holds no memories yet. Add some with POST /api/v2/memories, or import files "
    "and chats with `ekphory import`."
)


def _hint(service: MemoryService, place: Place, found: SearchFindings) -> str | None:
    """Return what to do where a search found nothing because there is nothing."""
    episodes = found.episodes
    if found.features or (episodes and (episodes.long_term or episodes.short_term)):
        return None
    return None if service.episodes.count(place) else _NOTHING_YET


def _write_answer(
    answer: SearchAnswer | ListAnswer, headers: Mapping[str, str] | None = None
) -> Response:
    """Write an answer here, where it was made: FastAPI would check it again, in another thread."""
    content = answer.model_dump_json(exclude_none=True)
    return Response(content, media_type="application/json", headers=headers)


# Projects.

projects_router = APIRouter(prefix="/api/v2/projects", tags=["Projects"], responses=REFUSALS)


@projects_router.post("", status_code=201, responses=ALREADY_THERE)
def create_project(request: CreateProject, service: TheService, caller: TheWriter) -> ProjectAnswer:
    """Make a project. Adding memories makes one too, where there is none of that name."""
    place = caller.place(request.org_id, request.project_id, "write")
    config = request.config.model_dump()
    project = Project(place.org, place.project, request.description, config)
    return _show_project(service.create_project(project))


@projects_router.post("/get", responses=NOT_THERE)
def get_project(request: ProjectName, service: TheService, caller: TheReader) -> ProjectAnswer:
    """Read a project."""
    place = caller.place(request.org_id, request.project_id, "read")
    return _show_project(service.get_project(place))


@projects_router.post("/list")
def list_projects(service: TheService, caller: TheReader) -> list[dict[str, str]]:
    """List the projects that the key reaches."""
    return [
        {"org_id": each.org, "project_id": each.project}
        for each in service.list_projects()
        if caller.may_see(each.org, each.project)
    ]


@projects_router.post("/delete", status_code=204, responses=NOT_THERE, response_class=Response)
def delete_project(request: ProjectName, service: TheService, caller: TheAdmin) -> None:
    """Forget a project with all of its memories, features, sets and traces."""
    service.delete_project(caller.place(request.org_id, request.project_id, "admin"))


@projects_router.post("/episode_count/get", responses=NOT_THERE)
def get_episode_count(request: ProjectName, service: TheService, caller: TheReader) -> EpisodeCount:
    """Count the episodes of a project."""
    place = caller.place(request.org_id, request.project_id, "read")
    service.get_project(place)
    return EpisodeCount(count=service.episodes.count(place))


def _show_project(project: Project) -> ProjectAnswer:
    return ProjectAnswer(
        org_id=project.org,
        project_id=project.project,
        description=project.description,
        config=ProjectConfig(**project.config),
    )


# Which parts of episodic memory a project's searches look into.

episodic_config_router = APIRouter(
    prefix="/api/v2/memory/episodic",
    tags=["Episodic configuration"],
    responses=REFUSALS | NOT_THERE,
)
_SWITCHES = {
    "enabled": "enabled",
    "long_term_memory_enabled": "long_term",
    "short_term_memory_enabled": "short_term",
}
"""Names of the parts on the wire, and in the catalog."""


@episodic_config_router.post("/config/get")
def get_config(request: InProject, service: TheService, caller: TheReader) -> EpisodicConfig:
    """Read which parts are in use."""
    switches = _switches(service, caller.place_of(request, "read"))
    return EpisodicConfig(**{wire: getattr(switches, own) for wire, own in _SWITCHES.items()})


@episodic_config_router.post("/config", status_code=204, response_class=Response)
def configure(request: ConfigureEpisodic, service: TheService, caller: TheWriter) -> None:
    """Switch parts on or off; what is said is kept all the same."""
    place = caller.place_of(request, "write")
    changes = {own: getattr(request, wire) for wire, own in _SWITCHES.items()}
    service.switch_parts(place, changes)


@episodic_config_router.post("/short_term/config/get")
def get_short_term(request: InProject, service: TheService, caller: TheReader) -> PartConfig:
    """Read whether the newest messages come with every search."""
    switches = _switches(service, caller.place_of(request, "read"))
    return PartConfig(enabled=switches.short_term)


@episodic_config_router.post("/short_term/config", status_code=204, response_class=Response)
def configure_short_term(request: ConfigurePart, service: TheService, caller: TheWriter) -> None:
    """Say whether the newest messages come with every search."""
    place = caller.place_of(request, "write")
    service.switch_parts(place, {"short_term": request.enabled})


@episodic_config_router.post("/long_term/config/get")
def get_long_term(request: InProject, service: TheService, caller: TheReader) -> PartConfig:
    """Read whether what answers a query is looked for."""
    switches = _switches(service, caller.place_of(request, "read"))
    return PartConfig(enabled=switches.long_term)


@episodic_config_router.post("/long_term/config", status_code=204, response_class=Response)
def configure_long_term(request: ConfigurePart, service: TheService, caller: TheWriter) -> None:
    """Say whether what answers a query is looked for."""
    place = caller.place_of(request, "write")
    service.switch_parts(place, {"long_term": request.enabled})


def _switches(service: MemoryService, place: Place) -> EpisodicSwitches:
    return service.get_project(place).switches
