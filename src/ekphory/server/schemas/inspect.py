"""What the inspector asks, and what it is told."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ekphory.recorded_searches import Surface
from ekphory.server.schemas.names import InProject, Moment
from ekphory.service.inspection import ShownReason, ShownStage
from ekphory.store.protocol import Order
from ekphory.types import MemoryType, ResultOrder, RevisionKind, RevisionState, TimeUse

MOST_HITS = 100
MOST_PAGE = 200
MOST_TOKENS = 100_000
_MOST_AROUND = 50
_LAST_PAGE = 1_000_000_000
_MOST_POOLS = 100


Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class ShownMemory(BaseModel):
    """A memory with everything that is kept of it."""

    id: str
    text: str
    at: datetime
    age: str = Field(description="The same in words.", examples=["3 days ago"])
    created_at: datetime
    expires_at: datetime | None
    pool: str
    type: MemoryType
    importance: float
    predicted: list[str] = Field(description="Which fields the embedder predicted.")
    producer: str
    produced_for: str
    role: str
    agent: str | None
    user: str | None
    session: str | None
    sequence: int | None
    source: str | None
    path: str | None
    heading: str | None
    lines: str | None
    supersedes: str | None
    metadata: dict[str, str]


class InspectSearch(InProject):
    """A question, searched with any preset."""

    query: Annotated[str, Field(examples=["What do I like to eat?"])]
    preset: str | None = None
    top_k: Annotated[int, Field(ge=1, le=MOST_HITS)] = 10
    pools: Annotated[
        list[str] | None, Field(min_length=1, max_length=_MOST_POOLS, fail_fast=True)
    ] = None
    filter: Annotated[str, Field(examples=["metadata.user_id = 'u1'"])] = ""
    min_score: Probability | None = None
    now: Moment | None = None
    time: TimeUse = "boost"
    agent_mode: bool = False
    max_tokens: Annotated[
        int | None, Field(ge=1, le=MOST_TOKENS, description="Of the block for the prompt.")
    ] = None


class ShownHit(BaseModel):
    """A hit with its numbers."""

    memory: ShownMemory
    text: str
    score: float = Field(description="Probability that it answers.")
    scores: dict[str, float] = Field(description="By the name of what gave them.")
    reasons: list[ShownReason]


class ShownAgent(BaseModel):
    """What the retrieval agent did; `events` are those of its trace."""

    provider: str
    selected_agent: str
    confidence: float | None
    milliseconds: float
    searches: int
    fallback_trigger_reason: str | None
    events: list[dict[str, Any]]


class LeftOutHit(BaseModel):
    """A hit that the block for the prompt does not show."""

    place: int = Field(description="Among the hits, from 1.")
    reason: str


class ShownPrompt(BaseModel):
    """The hits as a model gets them."""

    text: str
    used_tokens: int
    max_tokens: int
    left_out: list[LeftOutHit]


class ShownRecord(BaseModel):
    """A search that was recorded."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    at: datetime
    surface: Surface
    query: str
    preset: str
    hits: int
    milliseconds: float


class InspectSearchAnswer(BaseModel):
    """What a search gave, and all that it did."""

    query: str
    preset: str
    now: datetime
    milliseconds: float
    abstained: bool
    order: ResultOrder = Field(description="What the hits are ordered by.")
    hits: list[ShownHit]
    stages: list[ShownStage]
    agent: ShownAgent | None
    others: list[ShownMemory] = Field(description="Found by the agent on its way; not hits.")
    prompt: ShownPrompt | None = Field(default=None, description="Where `max_tokens` asks for it.")
    recorded: ShownRecord | None = Field(default=None, description="Where it was made before.")
    settings: dict[str, Any] | None = Field(default=None, description="Of a recorded search.")
    gone: int = Field(default=0, description="How many of its hits no longer exist.")


class InspectOutline(InProject):
    """Which memories of a project are looked at."""

    text: Annotated[str | None, Field(max_length=1000)] = None
    pool: str | None = None
    type: MemoryType | None = None
    session: str | None = None
    user: str | None = None
    source: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    least_importance: Probability | None = None


class InspectPage(InspectOutline):
    """One page of them."""

    page_size: Annotated[int, Field(ge=1, le=MOST_PAGE)] = 25
    page_num: Annotated[int, Field(ge=0, le=_LAST_PAGE)] = 0
    order: Order = "newest"


class PageAnswer(BaseModel):
    """Memories in order."""

    memories: list[ShownMemory]


class InspectMemory(InProject):
    """One memory of a project."""

    id: Annotated[str, Field(min_length=1, max_length=10_000)]


class InspectAround(InspectMemory):
    """What was said before and after it."""

    before: Annotated[int, Field(ge=0, le=_MOST_AROUND)] = 3
    after: Annotated[int, Field(ge=0, le=_MOST_AROUND)] = 3


class InspectUpdate(InspectMemory):
    """What is to be changed of it; what is not given stays."""

    text: str | None = None
    at: Moment | None = None
    type: MemoryType | None = None
    importance: Probability | None = None
    expires_at: Moment | None = None


class InspectForget(InspectMemory):
    """A memory to be forgotten; with `purge` no byte of it is left on disk."""

    purge: bool = False


class ForgottenAnswer(BaseModel):
    """What takes a forgotten memory back; None where that cannot be done."""

    undo: dict[str, Any] | None


class InspectTakeBack(InProject):
    """What `forget` gave."""

    undo: dict[str, Any]


class MemoryAnswer(BaseModel):
    """The id of the memory that is there again."""

    id: str


class InspectRevisions(InProject):
    """How many of a project's decisions are looked at."""

    limit: Annotated[int, Field(ge=1, le=MOST_PAGE)] = 100


class ShownRevision(BaseModel):
    """A decision with the two memories that it is about."""

    id: str
    batch: str
    kind: RevisionKind
    probability: float
    decided_by: str
    decided_at: datetime
    state: RevisionState
    older: ShownMemory
    newer: ShownMemory


class RevisionsAnswer(BaseModel):
    """Decisions that act or wait, the newest first."""

    revisions: list[ShownRevision]


class InspectSupersede(InProject):
    """Which memory takes the place of which."""

    old: Annotated[str, Field(min_length=1, max_length=10_000)]
    by: Annotated[str, Field(min_length=1, max_length=10_000)]
    kind: RevisionKind = "replaces"


class InspectUnsupersede(InProject):
    """A decision that is taken back."""

    revision: Annotated[str, Field(min_length=1, max_length=100)]


class UndoneAnswer(BaseModel):
    """How many decisions were taken back."""

    undone: int


class InspectRecords(InProject):
    """Which recorded searches of a project are looked at."""

    text: Annotated[str, Field(max_length=1000)] = ""
    surface: Surface | None = None
    preset: Annotated[str | None, Field(max_length=100)] = None


class InspectRecordPage(InspectRecords):
    """One page of them."""

    page_size: Annotated[int, Field(ge=1, le=MOST_PAGE)] = 25
    page_num: Annotated[int, Field(ge=0, le=_LAST_PAGE)] = 0


class InspectRecord(InProject):
    """One of them."""

    number: Annotated[int, Field(ge=0, le=2**63 - 1)]


class RecordsAnswer(BaseModel):
    """Recorded searches, the newest first."""

    kept: int = Field(description="How many are recorded at most; 0 for none.")
    total: int
    searches: list[ShownRecord]


class ClearedAnswer(BaseModel):
    """How many records were removed."""

    cleared: int


class ShownMinute(BaseModel):
    """How long the answers of one minute took."""

    at: datetime
    route: str
    answers: int
    p50: float = Field(description="Milliseconds.")
    p95: float = Field(description="Milliseconds.")


class LatencyAnswer(BaseModel):
    """The last hour of the process that answers."""

    minutes: list[ShownMinute]


class ShownPreset(BaseModel):
    """A preset in words."""

    name: str
    summary: str
    default: bool


class ShownFinding(BaseModel):
    """One thing that was looked at."""

    model_config = ConfigDict(from_attributes=True)

    subject: str
    state: Literal["fine", "note", "repairable", "wanting"]
    sentence: str


class HealthAnswer(BaseModel):
    """The state of the whole store."""

    healthy: bool
    findings: list[ShownFinding]
    numbers: dict[str, int | None]
