"""Memories and projects: added, searched, listed, deleted, configured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Header, Path, Response
from pydantic import BaseModel, BeforeValidator, Field, model_validator

from ekphory.catalog.database import NotThere
from ekphory.catalog.projects import EpisodicSwitches, Project
from ekphory.server.routes.context import (
    ALREADY_THERE,
    NOT_THERE,
    REFUSALS,
    RouteSession,
    ToAdminister,
    ToRead,
    ToWrite,
)
from ekphory.server.schemas.names import (
    Asked,
    IdOrEmpty,
    Ids,
    InProject,
    JsonMetadata,
    Metadata,
    Moment,
    Name,
    Wire,
    has_few_entries,
)
from ekphory.service.episodes import Episode, EpisodeQuery, FoundEpisodes, Uids, episode_metadata
from ekphory.service.episodes import EpisodeMessage as Said
from ekphory.service.handles import Place
from ekphory.service.memory_service import KINDS, Kind, SearchFindings
from ekphory.service.semantic import Feature

# Projects.

PropertyType = Literal["bool", "int", "float", "str", "datetime"]


class ProjectConfig(Asked):
    """What a project uses; empty for what the server has."""

    backend: Literal["declarative", "event"] | None = None
    reranker: str = ""
    embedder: str = ""
    vector_graph_store: str = ""
    vector_store: str = ""
    segment_store: str = ""
    properties_schema: Annotated[dict[str, PropertyType], BeforeValidator(has_few_entries)] = Field(
        default_factory=dict
    )


class ProjectName(InProject):
    """Names a project."""

    org_id: Annotated[Name, Field(examples=["home"])]
    """The organisation."""

    project_id: Annotated[Name, Field(examples=["chat"])]
    """The project."""


class CreateProject(ProjectName):
    """A project to be made."""

    description: str = ""
    config: ProjectConfig = Field(default_factory=ProjectConfig)


class ProjectAnswer(ProjectName):
    """A project as it is kept."""

    description: str
    config: ProjectConfig


class EpisodeCount(BaseModel):
    """How many episodes a project holds."""

    count: int
    hint: str | None = None


# Which parts of episodic memory a project uses.


class EpisodicConfig(BaseModel):
    """Which parts are in use."""

    enabled: bool
    long_term_memory_enabled: bool
    short_term_memory_enabled: bool


class ConfigureEpisodic(InProject):
    """Parts to be switched; those that are null stay."""

    enabled: bool | None = None
    long_term_memory_enabled: bool | None = None
    short_term_memory_enabled: bool | None = None


class PartConfig(BaseModel):
    """Whether a part is in use."""

    enabled: bool


class ConfigurePart(InProject):
    """A part to be switched; null changes nothing."""

    enabled: bool | None = None


# Memories.

MOST_RESULTS = 1_000
MOST_PAGE = 10_000
MOST_MESSAGES = 1_000
LONGEST_FILTER = 10_000
_LAST_PAGE = 1_000_000_000

MemoryKinds = Annotated[list[Kind], Field(max_length=8, fail_fast=True)]
EpisodeType = Literal["message"]


class Message(Asked):
    """Something that was said."""

    content: str
    producer: str = "user"
    produced_for: str = ""
    timestamp: Moment | None = None
    role: str = ""
    metadata: Metadata = Field(default_factory=dict)
    episode_type: EpisodeType | None = None


class AddMemories(InProject):
    """Messages to be remembered, in the order in which they were said."""

    types: MemoryKinds = Field(default_factory=list)
    """None means all."""

    messages: Annotated[
        list[Message],
        Field(
            min_length=1,
            max_length=MOST_MESSAGES,
            fail_fast=True,
            examples=[[{"content": "I like pizza"}]],
        ),
    ]


class AddedMemory(BaseModel):
    """A message that is remembered."""

    uid: str


class AddedMemories(BaseModel):
    """The messages that are remembered, in order."""

    results: list[AddedMemory]


class SearchMemories(InProject):
    """A question to a project's memory."""

    query: Annotated[str, Field(examples=["What do I like to eat?"])]
    top_k: Annotated[int, Field(ge=1, le=MOST_RESULTS)] = 10
    filter: Annotated[
        str, Field(max_length=LONGEST_FILTER, examples=["metadata.user_id = 'u1'"])
    ] = ""
    set_metadata: JsonMetadata | None = None
    expand_context: Annotated[int, Field(ge=0, le=MOST_RESULTS)] = 0
    score_threshold: Annotated[float | None, Field(allow_inf_nan=False)] = None
    types: MemoryKinds = Field(default_factory=list)
    """None means all."""

    agent_mode: bool = False
    retrieval_trace: bool = False
    """Whether the answer tells what the search did."""


class _ShownEpisode(BaseModel):
    uid: str
    content: str
    producer_id: str
    producer_role: str
    produced_for_id: str | None = None
    episode_type: EpisodeType = "message"
    created_at: datetime


class FoundEpisode(_ShownEpisode):
    """An episode that a search found."""

    score: float | None = None
    metadata: dict[str, str] | None = None


class LongTermMemory(BaseModel):
    """What answers, the likeliest first."""

    episodes: list[FoundEpisode]


class ShortTermMemory(Wire):
    """The newest episodes, in the order in which they were said."""

    episodes: list[FoundEpisode]
    episode_summary: list[str]
    """One text: what was said in the same session before these episodes."""


class EpisodicMemory(BaseModel):
    """What episodic memory gave."""

    long_term_memory: LongTermMemory
    short_term_memory: ShortTermMemory


class FeatureMetadata(BaseModel):
    """What is kept beside a feature."""

    citations: list[str] | None = None
    id: str | None = None
    other: dict[str, Any] | None = None


class SemanticFeature(BaseModel):
    """One thing that is known."""

    set_id: str | None = None
    category: str
    tag: str
    feature_name: str
    value: str
    metadata: FeatureMetadata


class SearchContent(BaseModel):
    """What a search found; a kind of memory that was not searched is left out."""

    episodic_memory: EpisodicMemory | None = None
    semantic_memory: list[SemanticFeature] | None = None
    retrieval_trace: dict[str, Any] | None = None


class SearchAnswer(Wire):
    """The answer to a search."""

    status: int = 0
    content: SearchContent
    hint: str | None = None
    """What to do next, where nothing is stored yet."""


class ListMemories(InProject):
    """A page of a project's memory."""

    page_size: Annotated[int, Field(ge=1, le=MOST_PAGE)] = 100
    page_num: Annotated[int, Field(ge=0, le=_LAST_PAGE)] = 0
    filter: Annotated[str, Field(max_length=LONGEST_FILTER)] = ""
    set_metadata: JsonMetadata | None = None
    type: Kind | None = None


class ListedEpisode(_ShownEpisode):
    """An episode as it is kept."""

    session_key: str
    sequence_num: int = 0
    content_type: Literal["string"] = "string"
    filterable_metadata: dict[str, str]
    metadata: dict[str, str]


class ListContent(BaseModel):
    """One page; a kind of memory that was not asked for is left out."""

    episodic_memory: list[ListedEpisode] | None = None
    semantic_memory: list[SemanticFeature] | None = None


class ListAnswer(BaseModel):
    """The answer to a listing."""

    status: int = 0
    content: ListContent
    hint: str | None = None


def _merge_ids(ids: list[str], one: str, kind: str) -> list[str]:
    """Return all ids that a request names, each once.

    Raises:
        ValueError: It names none.
    """
    merged = sorted({*ids, one} - {""})
    if not merged:
        raise ValueError(f"At least one {kind} ID must be provided")
    return merged


class DeleteEpisodes(InProject):
    """Episodes to be forgotten, at least one."""

    episodic_id: IdOrEmpty = ""
    episodic_ids: Ids = Field(default_factory=list)

    @model_validator(mode="after")
    def _merge(self) -> Self:
        self.episodic_ids = _merge_ids(self.episodic_ids, self.episodic_id, "episodic")
        return self


class DeleteFeatures(InProject):
    """Features to be forgotten, at least one."""

    semantic_id: IdOrEmpty = ""
    semantic_ids: Ids = Field(default_factory=list)

    @model_validator(mode="after")
    def _merge(self) -> Self:
        self.semantic_ids = _merge_ids(self.semantic_ids, self.semantic_id, "semantic")
        return self


# Memories and features in the shapes of the wire.


def found_episodes(found: FoundEpisodes, place: Place, uids: Uids) -> EpisodicMemory:
    """Return what episodic memory found."""
    episodes = (*found.long_term, *found.short_term)
    uid_of = _name_episodes(episodes, place, uids)
    shaped = [show_episode(each, uid_of) for each in episodes]
    long_term = len(found.long_term)
    return EpisodicMemory(
        long_term_memory=LongTermMemory(episodes=shaped[:long_term]),
        short_term_memory=ShortTermMemory(
            episodes=shaped[long_term:],
            # MemMachine's clients expect one text, empty where nothing was said before.
            episode_summary=[found.summary],
        ),
    )


def listed_episodes(episodes: Sequence[Episode], place: Place, uids: Uids) -> list[ListedEpisode]:
    """Return episodes as they are kept; their metadata says what holds in their place."""
    uid_of = _name_episodes(episodes, place, uids)
    return [
        ListedEpisode(
            **_shared(each, uid_of),
            session_key=place.session_key,
            sequence_num=each.record.sequence or 0,
            filterable_metadata=episode_metadata(each.record),
        )
        for each in episodes
    ]


def _name_episodes(episodes: Sequence[Episode], place: Place, uids: Uids) -> dict[str, str]:
    """Return under which id each episode, and what holds in its place, is shown, by its own."""
    successors = [each.superseded_by for each in episodes if each.superseded_by is not None]
    # All at once: what the catalog knows of ids is read once.
    names = [*(each.record.id for each in episodes), *successors]
    return dict(zip(names, uids.shown(place, names), strict=True))


def show_feature(feature: Feature, *, citations: list[str] | None) -> SemanticFeature:
    """Return a feature, with the citations that are to be shown."""
    other = dict(feature.metadata) or None
    return SemanticFeature(
        set_id=feature.set_id,
        category=feature.category,
        tag=feature.tag,
        feature_name=feature.name,
        value=feature.value,
        metadata=FeatureMetadata(citations=citations, id=feature.id, other=other),
    )


def cited_features(features: Sequence[Feature], place: Place, uids: Uids) -> list[SemanticFeature]:
    """Return features with their citations."""
    return [show_feature(each, citations=uids.shown(place, each.citations)) for each in features]


def show_episode(episode: Episode, uid_of: Mapping[str, str]) -> FoundEpisode:
    """Return an episode that was found; its metadata says what holds in its place.

    Args:
        episode: What was found.
        uid_of: By its id and that of what holds in its place, under which it is shown.
    """
    return FoundEpisode(**_shared(episode, uid_of), score=episode.score)


def _shared(episode: Episode, uid_of: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that found and listed episodes have in common."""
    record, told = episode.record, {}
    if episode.superseded_by is not None and episode.since is not None:
        told = {
            "superseded_by": uid_of[episode.superseded_by],
            "superseded_since": episode.since.isoformat(),
        }
    return {
        "uid": uid_of[record.id],
        "content": record.text,
        "producer_id": record.producer,
        "producer_role": record.role,
        "produced_for_id": record.produced_for,
        "metadata": told | episode_metadata(record),
        "created_at": record.at,
    }


# The endpoints of memories.

TRACE_ID = "X-Trace-ID"
TraceWanted = Annotated[
    bool, Header(alias="X-Retrieval-Trace", description="As the field retrieval_trace.")
]
memories_router = APIRouter(prefix="/api/v2", tags=["Memories"], responses=REFUSALS)


@memories_router.post("/memories")
def add_memories(request: AddMemories, session: ToWrite) -> AddedMemories:
    """Remember messages; on return they are durable. Makes the project, if need be."""
    place = session.place(request)
    session.service.ensure_project(place)
    kinds = set(request.types)
    ids = session.service.episodes.add(
        place,
        [
            Said(at=message.timestamp, **message.model_dump(exclude={"timestamp", "episode_type"}))
            for message in request.messages
        ],
        # Said to be of one kind only; else the embedder predicts it.
        kind=request.types[0] if len(kinds) == 1 else None,
    )
    session.metrics.added.inc(len(ids))
    if not kinds or "semantic" in kinds:
        session.service.extraction.learn_from(place, ids)
    return AddedMemories(
        results=[AddedMemory(uid=each) for each in session.service.uids.shown(place, ids)]
    )


@memories_router.post("/memories/search", response_model=SearchAnswer, responses=NOT_THERE)
def search_memories(
    request: SearchMemories, session: ToRead, trace_wanted: TraceWanted = False
) -> Response:
    """Find what answers a question. The header X-Trace-ID names the trace of the search."""
    place = session.place(request)
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
    found = session.service.search(
        place, query, kinds=request.types or KINDS, set_metadata=request.set_metadata
    )
    for search in found.trace["searches"]:
        for stage in search["stages"]:
            session.metrics.stage(stage["name"], stage["milliseconds"])
    content = SearchContent()
    if found.episodes is not None:
        content.episodic_memory = found_episodes(found.episodes, place, session.service.uids)
    if found.features is not None:
        content.semantic_memory = cited_features(found.features, place, session.service.uids)
    if request.retrieval_trace or trace_wanted:
        content.retrieval_trace = dict(found.trace)
    answer = SearchAnswer(content=content, hint=_hint(session, request, found))
    return _write_answer(answer, {TRACE_ID: found.trace["trace_id"]})


@memories_router.post("/memories/list", response_model=ListAnswer, responses=NOT_THERE)
def list_memories(request: ListMemories, session: ToRead) -> Response:
    """List a page of episodes in the order in which they were said, and of features."""
    place = session.place(request)
    kinds = KINDS if request.type is None else (request.type,)
    limit, offset = request.page_size, request.page_size * request.page_num
    content = ListContent()
    if "episodic" in kinds:
        episodes = session.service.episodes.page(place, request.filter, limit=limit, offset=offset)
        content.episodic_memory = listed_episodes(episodes, place, session.service.uids)
    if "semantic" in kinds:
        features = session.service.features.page(
            place,
            limit=limit,
            offset=offset,
            condition=request.filter,
            set_metadata=request.set_metadata,
        )
        content.semantic_memory = cited_features(features, place, session.service.uids)
    is_empty = not content.episodic_memory and not content.semantic_memory
    hint = _hint_at_nothing(session, request) if is_empty else None
    return _write_answer(ListAnswer(content=content, hint=hint))


@memories_router.post(
    "/memories/episodic/delete", status_code=204, responses=NOT_THERE, response_class=Response
)
def delete_episodic(request: DeleteEpisodes, session: ToWrite) -> None:
    """Forget episodes. One that is not there is forgotten already."""
    place = session.place(request)
    session.service.get_project(place)  # told where it is not there
    session.service.episodes.delete(place, session.service.uids.stored(place, request.episodic_ids))
    session.service.ensure_project(place)  # it stays when its last memory goes


@memories_router.post(
    "/memories/semantic/delete", status_code=204, responses=NOT_THERE, response_class=Response
)
def delete_semantic(request: DeleteFeatures, session: ToWrite) -> None:
    """Forget features: all that are named, or none where one of them is not there."""
    session.service.features.delete(session.place(request), request.semantic_ids)


@memories_router.get("/traces/{trace_id}", responses=NOT_THERE)
def get_trace(trace_id: Annotated[str, Path(max_length=100)], session: ToRead) -> dict[str, Any]:
    """Read what an earlier search did."""
    found = session.service.traces.get(trace_id)
    if not session.caller.may_see(found.org, found.project):
        # Told like one that is not there, so that nobody learns of other projects.
        raise NotThere("Trace does not exist")
    names = {"org_id": found.org, "project_id": found.project, "created_at": found.created_at}
    return {**names, **found.content}


_NOTHING_YET = (
    "Project {0.project!r} of organisation {0.org!r} holds no memories yet. Add some with "
    "POST /api/v2/memories, or import files and chats with "
    "`ekphory import FILE --store URL --org ORG --project PROJECT`, with this server's URL. "
    "POST /api/v2/projects/list lists the projects that there are."
)


def _hint(session: RouteSession, request: InProject, found: SearchFindings) -> str | None:
    """Return what to do where a search found nothing because there is nothing."""
    episodes = found.episodes
    if found.features or (episodes and (episodes.long_term or episodes.short_term)):
        return None
    return _hint_at_nothing(session, request)


def _hint_at_nothing(session: RouteSession, request: InProject) -> str | None:
    """Return what to do where a project holds nothing; None where it holds something."""
    place = session.place(request)
    if session.service.episodes.count(place):
        return None
    return _NOTHING_YET.format(place) + session.point_to_default(request)


def _write_answer(
    answer: SearchAnswer | ListAnswer, headers: Mapping[str, str] | None = None
) -> Response:
    """Write an answer here, where it was made: FastAPI would check it again, in another thread."""
    content = answer.model_dump_json(exclude_none=True)
    return Response(content, media_type="application/json", headers=headers)


# Projects.

projects_router = APIRouter(prefix="/api/v2/projects", tags=["Projects"], responses=REFUSALS)


@projects_router.post("", status_code=201, responses=ALREADY_THERE)
def create_project(request: CreateProject, session: ToWrite) -> ProjectAnswer:
    """Make a project. Adding memories makes one too, where there is none of that name."""
    owner = session.place(request).owner
    project = Project(*owner, request.description, request.config.model_dump())
    return _show_project(session, session.service.create_project(project))


@projects_router.post("/get", responses=NOT_THERE)
def get_project(request: ProjectName, session: ToRead) -> ProjectAnswer:
    """Read a project."""
    return _show_project(session, session.service.get_project(session.place(request)))


@projects_router.post("/list")
def list_projects(session: ToRead) -> list[dict[str, str]]:
    """List the projects that the key reaches."""
    return [
        {"org_id": each.org, "project_id": each.project}
        for each in session.service.list_projects()
        if session.caller.may_see(each.org, each.project)
    ]


@projects_router.post("/delete", status_code=204, responses=NOT_THERE, response_class=Response)
def delete_project(request: ProjectName, session: ToAdminister) -> None:
    """Forget a project with all of its memories, features, sets and traces."""
    session.service.delete_project(session.place(request))


@projects_router.post("/episode_count/get", responses=NOT_THERE, response_model_exclude_none=True)
def get_episode_count(request: ProjectName, session: ToRead) -> EpisodeCount:
    """Count the episodes of a project."""
    count = session.service.episodes.count(session.place(request))
    return EpisodeCount(count=count, hint=None if count else _hint_at_nothing(session, request))


def _show_project(session: RouteSession, project: Project) -> ProjectAnswer:
    return ProjectAnswer(
        org_id=project.org,
        project_id=project.project,
        description=project.description,
        config=ProjectConfig(**session.service.configuration.named(project.config)),
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
def get_config(request: InProject, session: ToRead) -> EpisodicConfig:
    """Read which parts are in use."""
    switches = _switches(request, session)
    return EpisodicConfig(**{wire: getattr(switches, own) for wire, own in _SWITCHES.items()})


@episodic_config_router.post("/config", status_code=204, response_class=Response)
def configure(request: ConfigureEpisodic, session: ToWrite) -> None:
    """Switch parts on or off; what is said is kept all the same."""
    changes = {own: getattr(request, wire) for wire, own in _SWITCHES.items()}
    session.service.switch_parts(session.place(request), changes)


@episodic_config_router.post("/short_term/config/get")
def get_short_term(request: InProject, session: ToRead) -> PartConfig:
    """Read whether the newest messages come with every search."""
    return PartConfig(enabled=_switches(request, session).short_term)


@episodic_config_router.post("/short_term/config", status_code=204, response_class=Response)
def configure_short_term(request: ConfigurePart, session: ToWrite) -> None:
    """Say whether the newest messages come with every search."""
    session.service.switch_parts(session.place(request), {"short_term": request.enabled})


@episodic_config_router.post("/long_term/config/get")
def get_long_term(request: InProject, session: ToRead) -> PartConfig:
    """Read whether what answers a query is looked for."""
    return PartConfig(enabled=_switches(request, session).long_term)


@episodic_config_router.post("/long_term/config", status_code=204, response_class=Response)
def configure_long_term(request: ConfigurePart, session: ToWrite) -> None:
    """Say whether what answers a query is looked for."""
    session.service.switch_parts(session.place(request), {"long_term": request.enabled})


def _switches(request: InProject, session: RouteSession) -> EpisodicSwitches:
    return session.service.get_project(session.place(request)).switches
