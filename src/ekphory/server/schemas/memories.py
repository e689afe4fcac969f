"""Memories and projects on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from ekphory.server.schemas.names import (
    IdOrEmpty,
    Ids,
    InProject,
    JsonMetadata,
    Metadata,
    Moment,
    Name,
    has_few_entries,
)
from ekphory.service.episodes import Episode, FoundEpisodes, Uids, shown_metadata
from ekphory.service.handles import Place
from ekphory.service.semantic import Feature
from ekphory.types import MemoryRecord

# Projects.

PropertyType = Literal["bool", "int", "float", "str", "datetime"]


class ProjectConfig(BaseModel):
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


class ProjectName(BaseModel):
    """Names a project."""

    org_id: Annotated[Name, Field(description="The organisation.", examples=["home"])]
    project_id: Annotated[Name, Field(description="The project.", examples=["chat"])]


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

MemoryKind = Literal["episodic", "semantic"]
MemoryKinds = Annotated[list[MemoryKind], Field(max_length=8, fail_fast=True)]
EpisodeType = Literal["message"]


class Message(BaseModel):
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

    types: MemoryKinds = Field(default_factory=list, description="None means all.")
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
    types: MemoryKinds = Field(default_factory=list, description="None means all.")
    agent_mode: bool = False
    retrieval_trace: bool = Field(
        default=False, description="Whether the answer tells what the search did."
    )


class FoundEpisode(BaseModel):
    """An episode that a search found."""

    uid: str
    score: float | None = None
    content: str
    producer_id: str
    producer_role: str
    produced_for_id: str | None = None
    episode_type: EpisodeType = "message"
    metadata: dict[str, str] | None = None
    created_at: datetime


class LongTermMemory(BaseModel):
    """What answers, the likeliest first."""

    episodes: list[FoundEpisode]


class ShortTermMemory(BaseModel):
    """The newest episodes, in the order in which they were said."""

    episodes: list[FoundEpisode]
    episode_summary: Annotated[
        list[str],
        Field(description="One text: what was said in the same session before these episodes."),
    ]


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


class SearchAnswer(BaseModel):
    """The answer to a search."""

    status: int = 0
    content: SearchContent
    hint: str | None = Field(None, description="What to do next, where nothing is stored yet.")


class ListMemories(InProject):
    """A page of a project's memory."""

    page_size: Annotated[int, Field(ge=1, le=MOST_PAGE)] = 100
    page_num: Annotated[int, Field(ge=0, le=_LAST_PAGE)] = 0
    filter: Annotated[str, Field(max_length=LONGEST_FILTER)] = ""
    set_metadata: JsonMetadata | None = None
    type: MemoryKind | None = None


class ListedEpisode(BaseModel):
    """An episode as it is kept."""

    uid: str
    content: str
    session_key: str
    created_at: datetime
    producer_id: str
    producer_role: str
    produced_for_id: str | None = None
    sequence_num: int = 0
    episode_type: EpisodeType = "message"
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
    # All at once: what the catalog knows of ids is read once.
    shown = uids.shown(place, [each.record.id for each in episodes])
    shaped = [show_episode(each, uid) for each, uid in zip(episodes, shown, strict=True)]
    long_term = len(found.long_term)
    return EpisodicMemory(
        long_term_memory=LongTermMemory(episodes=shaped[:long_term]),
        short_term_memory=ShortTermMemory(
            episodes=shaped[long_term:],
            # MemMachine's clients expect one text, empty where nothing was said before.
            episode_summary=[found.summary],
        ),
    )


def listed_episodes(
    records: Sequence[MemoryRecord], place: Place, uids: Uids
) -> list[ListedEpisode]:
    """Return episodes as they are kept."""
    shown = uids.shown(place, [record.id for record in records])
    return [
        ListedEpisode(
            **_shared(record, uid),
            session_key=place.session_key,
            sequence_num=record.sequence or 0,
            filterable_metadata=shown_metadata(record.metadata),
        )
        for record, uid in zip(records, shown, strict=True)
    ]


def show_feature(feature: Feature, *, citations: list[str] | None) -> SemanticFeature:
    """Return a feature, with the citations that are to be shown."""
    return SemanticFeature(
        set_id=feature.set_id,
        category=feature.category,
        tag=feature.tag,
        feature_name=feature.name,
        value=feature.value,
        metadata=FeatureMetadata(
            citations=citations, id=feature.id, other=dict(feature.metadata) or None
        ),
    )


def cited_features(features: Sequence[Feature], place: Place, uids: Uids) -> list[SemanticFeature]:
    """Return features with their citations."""
    return [show_feature(each, citations=uids.shown(place, each.citations)) for each in features]


def show_episode(episode: Episode, uid: str) -> FoundEpisode:
    """Return an episode that was found."""
    return FoundEpisode(**_shared(episode.record, uid), score=episode.score)


def _shared(record: MemoryRecord, uid: str) -> dict[str, Any]:
    """Return the fields that found and listed episodes have in common."""
    return {
        "uid": uid,
        "content": record.text,
        "producer_id": record.producer,
        "producer_role": record.role,
        "produced_for_id": record.produced_for,
        "metadata": shown_metadata(record.metadata),
        "created_at": record.at,
    }
