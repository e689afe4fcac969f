"""What the inspector asks for, and its page."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as PathField
from fastapi.responses import FileResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field

from ekphory.agent_trace import RetrievalTrace
from ekphory.catalog.database import NotThere
from ekphory.config import read_recorded
from ekphory.prompting.block import estimate_tokens, format_age
from ekphory.recorded_searches import RecordedIn, Surface
from ekphory.retrieval.presets import PRESETS
from ekphory.search import SearchResult
from ekphory.server import inspector
from ekphory.server.request_log import Metrics
from ekphory.server.routes.context import NOT_THERE, REFUSALS, RouteSession, ToRead, ToWrite
from ekphory.server.routes.revisions import UndoneAnswer
from ekphory.server.schemas.names import InProject, Moment, Wire
from ekphory.service import inspection
from ekphory.service.episodes import Selection, shown_metadata
from ekphory.store.checks import Finding, examine
from ekphory.store.protocol import Order, StoreHealth
from ekphory.types import (
    MemoryRecord,
    MemoryType,
    ResultOrder,
    Revision,
    RevisionKind,
    RevisionState,
    TimeUse,
    now_utc,
)

MOST_HITS = 100
MOST_PAGE = 200
MOST_TOKENS = 100_000
_MOST_AROUND = 50
_LAST_PAGE = 1_000_000_000
_MOST_POOLS = 100


Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class ShownMemory(Wire):
    """A memory with everything that is kept of it."""

    id: str
    text: str
    at: datetime
    age: str = Field(examples=["3 days ago"])
    """The same in words."""

    created_at: datetime
    expires_at: datetime | None
    pool: str
    type: MemoryType
    importance: float
    predicted: list[str]
    """Which fields the embedder predicted."""

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
    max_tokens: Annotated[int | None, Field(ge=1, le=MOST_TOKENS)] = None
    """Of the block for the prompt."""


class ShownHit(Wire):
    """A hit with its numbers."""

    memory: ShownMemory
    text: str
    score: float
    """Probability that it answers."""

    scores: dict[str, float]
    """By the name of what gave them."""

    reasons: list[inspection.ShownReason]


class ShownAgent(BaseModel):
    """What the retrieval agent did; `events` are those of its trace."""

    provider: str
    selected_agent: str
    confidence: float | None
    milliseconds: float
    searches: int
    fallback_trigger_reason: str | None
    events: list[dict[str, Any]]


class LeftOutHit(Wire):
    """A hit that the block for the prompt does not show."""

    place: int
    """Among the hits, from 1."""

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


class InspectSearchAnswer(Wire):
    """What a search gave, and all that it did."""

    query: str
    preset: str
    now: datetime
    milliseconds: float
    abstained: bool
    order: ResultOrder
    """What the hits are ordered by."""

    hits: list[ShownHit]
    stages: list[inspection.ShownStage]
    agent: ShownAgent | None
    others: list[ShownMemory]
    """Found by the agent on its way; not hits."""

    prompt: ShownPrompt | None = None
    """Where `max_tokens` asks for it."""

    recorded: ShownRecord | None = None
    """Where it was made before."""

    settings: dict[str, Any] | None = None
    """Of a recorded search."""

    gone: int = 0
    """How many of its hits no longer exist."""


class InspectOutline(InProject):
    """Which memories of a project are looked at."""

    text: Annotated[str | None, Field(max_length=1000)] = None
    pool: str | None = None
    type: MemoryType | None = None
    session: str | None = None
    user: str | None = None
    source: str | None = None
    entity: Annotated[str | None, Field(max_length=1000, examples=["person: Ann"])] = None
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


class RecordsAnswer(Wire):
    """Recorded searches, the newest first."""

    kept: int
    """How many are recorded at most; 0 for none."""

    total: int
    searches: list[ShownRecord]


class ClearedAnswer(BaseModel):
    """How many records were removed."""

    cleared: int


class ShownMinute(Wire):
    """How long the answers of one minute took."""

    at: datetime
    route: str
    answers: int
    p50: float
    """Milliseconds."""

    p95: float
    """Milliseconds."""


class LatencyAnswer(BaseModel):
    """The last hour of the process that answers."""

    minutes: list[ShownMinute]


class ShownPreset(BaseModel):
    """A preset in words."""

    name: str
    summary: str
    default: bool


class HealthAnswer(BaseModel):
    """The state of the whole store."""

    healthy: bool
    findings: list[Finding]
    numbers: dict[str, int | None]


# The endpoints.

# Of a memory and of a decision, under the same names.
_COPIED = ShownMemory.model_fields.keys() - {"age", "predicted", "metadata"}
_NAMING = {"org_id", "project_id", "id"}
_COPIED_OF_REVISION = ShownRevision.model_fields.keys() - {"older", "newer"}


def show_memory(record: MemoryRecord, now: datetime) -> ShownMemory:
    """Return a memory with its age at a moment."""
    return ShownMemory(
        **{name: getattr(record, name) for name in _COPIED},
        age=format_age(record.at, now),
        predicted=sorted(record.predicted),
        metadata=shown_metadata(record.metadata),
    )


def search_answer(examined: inspection.Examined, query: str) -> InspectSearchAnswer:
    """Return a search with all its stages."""
    result = examined.result
    told = zip(result.hits, examined.reasons, strict=True)
    return InspectSearchAnswer(
        query=query,
        preset=examined.preset,
        now=examined.now,
        milliseconds=result.trace.milliseconds,
        abstained=result.abstained,
        order=result.order,
        hits=[
            ShownHit(
                memory=show_memory(hit.memory, examined.now),
                text=hit.text,
                score=hit.score,
                # Only what JSON can carry.
                scores={name: each for name, each in hit.scores.items() if math.isfinite(each)},
                reasons=why,
            )
            for hit, why in told
        ],
        stages=examined.rows,
        agent=None if result.retrieval_trace is None else _show_agent(result.retrieval_trace),
        others=[show_memory(record, examined.now) for record in examined.others],
        gone=examined.gone,
    )


def show_prompt(result: SearchResult, max_tokens: int, now: datetime) -> ShownPrompt:
    """Return the block for the prompt as a model gets it, and what it leaves out."""
    block = result.prompt_block(max_tokens, now=now)
    # With the chain of evidence, where the agent followed one.
    text = block.text
    if result.retrieval_trace is not None:
        text = result.answer_context(max_tokens, now=now)
    places = {hit.id: place for place, hit in enumerate(result, start=1)}
    return ShownPrompt(
        text=text,
        used_tokens=estimate_tokens(text),
        max_tokens=max_tokens,
        left_out=[
            LeftOutHit(place=places[each.hit.id], reason=each.reason) for each in block.left_out
        ],
    )


def health_answer(health: StoreHealth) -> HealthAnswer:
    """Return the state of a store, judged."""
    findings = list(examine(health))
    measured = asdict(health)
    return HealthAnswer(
        healthy=all(finding.state in ("fine", "note") for finding in findings),
        findings=findings,
        numbers={name: each for name, each in measured.items() if each is None or type(each) is int}
        | {"orphaned_scopes": len(health.orphaned_scopes)},
    )


def join_health(parts: Mapping[str, HealthAnswer]) -> HealthAnswer:
    """Return the state of several stores, by their names: what is the same of all is told once."""
    found: dict[Finding, list[str]] = {}
    for name, part in parts.items():
        for each in part.findings:
            told = replace(each, sentence="Fine in all shards.") if each.state == "fine" else each
            found.setdefault(told, []).append(name)
    wanting = {each.subject for each in found if each.state != "fine"}
    numbers: dict[str, int | None] = {}
    for part in parts.values():
        for name, number in part.numbers.items():
            before = numbers.get(name, 0)
            numbers[name] = None if number is None or before is None else before + number
    return HealthAnswer(
        healthy=all(part.healthy for part in parts.values()),
        findings=[
            each
            if whose == [*parts]
            else replace(each, sentence=f"{', '.join(whose)}: {each.sentence}")
            for each, whose in found.items()
            if each.state != "fine" or each.subject not in wanting
        ],
        numbers=numbers,
    )


def _show_agent(trace: RetrievalTrace) -> ShownAgent:
    return ShownAgent(
        provider=trace.provider,
        selected_agent=trace.selected_agent_name,
        confidence=trace.confidence_score,
        milliseconds=trace.milliseconds,
        searches=trace.memory_search_called,
        fallback_trigger_reason=trace.fallback_trigger_reason,
        events=[event.to_dict() for event in trace.events],
    )


inspect_router = APIRouter(prefix="/api/v2/inspect", tags=["Inspector"], responses=REFUSALS)


@inspect_router.get("/presets")
def list_presets(session: ToRead) -> list[ShownPreset]:
    """List the presets that a search can name."""
    return [
        ShownPreset(
            name=name, summary=each.summary, default=name == session.service.models.preset.name
        )
        for name, each in PRESETS.items()
    ]


@inspect_router.post("/search", responses=NOT_THERE)
def inspect_search(request: InspectSearch, session: ToRead) -> InspectSearchAnswer:
    """Search a project, and tell every stage, every score and every hop. Nothing is kept."""
    place = session.place(request)
    settings = request.model_dump(include={"pools", "min_score", "now", "time", "agent_mode"})
    examined = session.service.inspection.search(
        place,
        request.query,
        preset=request.preset,
        condition=request.filter,
        k=request.top_k,
        **settings,
    )
    answer = search_answer(examined, request.query)
    if request.max_tokens is not None:
        answer.prompt = show_prompt(examined.result, request.max_tokens, examined.now)
    return answer


@inspect_router.post("/outline", responses=NOT_THERE)
def inspect_outline(request: InspectOutline, session: ToRead) -> inspection.OutlineAnswer:
    """Count a project's memories by pool, type, importance and time."""
    return session.service.inspection.outline(session.place(request), _selection(request))


@inspect_router.post("/memories", responses=NOT_THERE)
def inspect_memories(request: InspectPage, session: ToRead) -> PageAnswer:
    """Read a page of a project's memories with all their fields."""
    with session.memory(request) as memory:
        found = memory.list(
            filter=_selection(request).condition(),
            limit=request.page_size,
            offset=request.page_size * request.page_num,
            order=request.order,
        )
    return _page(found)


@inspect_router.post("/around", responses=NOT_THERE)
def inspect_around(request: InspectAround, session: ToRead) -> PageAnswer:
    """Read a memory with what was said before and after it in its session."""
    around, place = session.service.inspection.around, session.place(request)
    return _page(around(place, request.id, before=request.before, after=request.after))


@inspect_router.post("/history", responses=NOT_THERE)
def inspect_history(request: InspectMemory, session: ToRead) -> PageAnswer:
    """Read a memory and its earlier versions, the newest first."""
    with session.memory(request) as memory:
        return _page(memory.history(request.id))


@inspect_router.post("/update", responses=NOT_THERE)
def update_memory(request: InspectUpdate, session: ToWrite) -> ShownMemory:
    """Replace fields of a memory; its earlier version is kept as history."""
    changes = request.model_dump(exclude=_NAMING, exclude_none=True)
    with session.memory(request) as memory:
        return show_memory(memory.update(request.id, **changes), now_utc())


@inspect_router.post("/forget", responses=NOT_THERE)
def forget_memory(request: InspectForget, session: ToWrite) -> ForgottenAnswer:
    """Forget a memory with its history. Without `purge` the answer takes it back."""
    place = session.place(request)
    undo = session.service.inspection.forget(place, request.id, purge=request.purge)
    session.service.ensure_project(place)  # it stays when its last memory goes
    return ForgottenAnswer(undo=undo)


@inspect_router.post("/take_back")
def take_back(request: InspectTakeBack, session: ToWrite) -> MemoryAnswer:
    """Undo a `forget`."""
    place = session.place(request)
    return MemoryAnswer(id=session.service.inspection.take_back(place, request.undo))


@inspect_router.post("/revisions", responses=NOT_THERE)
def list_revisions(request: InspectRevisions, session: ToRead) -> RevisionsAnswer:
    """List which memories supersede which, and what waits for somebody to look."""
    now = now_utc()
    with session.memory(request) as memory:
        decided = memory.revisions(limit=request.limit)
    return RevisionsAnswer(
        revisions=[
            ShownRevision(
                **{name: getattr(each.revision, name) for name in _COPIED_OF_REVISION},
                older=show_memory(each.older, now),
                newer=show_memory(each.newer, now),
            )
            for each in decided
        ]
    )


@inspect_router.post("/supersede", responses=NOT_THERE)
def supersede_memory(request: InspectSupersede, session: ToWrite) -> Revision:
    """Note that one memory takes the place of another; both are kept."""
    with session.memory(request) as memory:
        return memory.supersede(request.old, by=request.by, kind=request.kind)


@inspect_router.post("/unsupersede", responses=NOT_THERE)
def take_revision_back(request: InspectUnsupersede, session: ToWrite) -> UndoneAnswer:
    """Take back a decision, or set a conflict aside."""
    with session.memory(request) as memory:
        return UndoneAnswer(undone=memory.unsupersede(revision=request.revision))


@inspect_router.post("/searches", responses=NOT_THERE)
def list_searches(request: InspectRecordPage, session: ToRead) -> RecordsAnswer:
    """List a page of the searches that were recorded in a project."""
    which = _recorded_in(request, session)
    records = session.service.handles.recorded(which)
    total, found = records.page(
        which, limit=request.page_size, offset=request.page_size * request.page_num
    )
    if not total:
        _check_recorded(which, request, session)
    shown = [ShownRecord.model_validate(each) for each in found]
    return RecordsAnswer(kept=read_recorded(), total=total, searches=shown)


@inspect_router.post("/searches/get", responses=NOT_THERE)
def get_search(request: InspectRecord, session: ToRead) -> InspectSearchAnswer:
    """Read a recorded search as it was, with those of its hits that are still there."""
    which = _recorded_in(request, session)
    record, examined = session.service.inspection.recorded(which, request.number)
    answer = search_answer(examined, record.query)
    answer.recorded = ShownRecord.model_validate(record)
    names = ("k", "min_score", "time", "now", "pools", "filter", "agent_mode")
    answer.settings = {name: record.content[name] for name in names}
    return answer


@inspect_router.post("/searches/clear", responses=NOT_THERE)
def clear_searches(request: InspectRecords, session: ToWrite) -> ClearedAnswer:
    """Remove recorded searches of a project for good."""
    which = _recorded_in(request, session)
    cleared = session.service.handles.recorded(which).clear(which)
    if not cleared:
        _check_recorded(which, request, session)
    return ClearedAnswer(cleared=cleared)


@inspect_router.get("/growth")
def inspect_growth(session: ToRead) -> inspection.GrowthAnswer:
    """Count the memories that the key reaches by when they were written."""
    return session.service.inspection.growth(session.caller.org, session.caller.project)


@inspect_router.get("/latency")
def inspect_latency(session: ToRead) -> LatencyAnswer:
    """Say how long the answers of the last hour took, by minute."""
    return show_latency(session.metrics)


@inspect_router.get("/health")
def inspect_health(session: ToRead) -> HealthAnswer:
    """Judge the whole store, as `ekphory doctor` does. For keys that are bound to nothing."""
    session.caller.check_unbound()
    return health_answer(session.service.handles.health())


def show_latency(metrics: Metrics) -> LatencyAnswer:
    """Return how long the answers of the last hour took."""
    return LatencyAnswer(minutes=[ShownMinute(**each) for each in metrics.last_hour()])


def _page(records: Sequence[MemoryRecord]) -> PageAnswer:
    now = now_utc()
    return PageAnswer(memories=[show_memory(record, now) for record in records])


_ANY_RECORD: dict[str, Any] = {"text": "", "surface": None, "preset": None}


def _recorded_in(request: InProject, session: RouteSession) -> RecordedIn:
    place = session.caller.place_of(request, session.needed)
    names = _ANY_RECORD.keys() & type(request).model_fields.keys()
    # A search of a scope that names no organisation may have shown any of them.
    return RecordedIn(
        org=place.org,
        project=place.project,
        unbound=session.caller.org is None,
        **request.model_dump(include=names),
    )


def _check_recorded(which: RecordedIn, request: InProject, session: RouteSession) -> None:
    """Check that a project exists, unless something was recorded in it.

    A scope that names nothing is searched, and recorded, whatever projects there are.
    """
    records = session.service.handles.recorded(which)
    if not records.page(replace(which, **_ANY_RECORD), limit=1, offset=0)[0]:
        session.existing(request)


def _selection(request: InspectOutline) -> Selection:
    return Selection(**{entry.name: getattr(request, entry.name) for entry in fields(Selection)})


# The page and its files, which anybody may load: they hold nothing of the store.

_FOLDER = Path(inspector.__file__).parent
_SERVED = tomllib.loads((_FOLDER / "served.toml").read_text("utf-8"))
_MEDIA_TYPES: dict[str, str] = _SERVED["media_types"]
_FILES = {path.name: path for path in _FOLDER.rglob("*") if path.suffix in _MEDIA_TYPES}
_POLICY = "; ".join(f"{name} {value}" for name, value in _SERVED["policy"].items())
_HEADERS = {"Content-Security-Policy": _POLICY, **_SERVED["headers"]}

inspector_page_router = APIRouter(include_in_schema=False)


@inspector_page_router.get("/")
def lead_to_page() -> RedirectResponse:
    """Lead from the server's address to the page."""
    return RedirectResponse("inspect")


@inspector_page_router.get("/inspect")
def page() -> FileResponse:
    """Show the page."""
    return file("page.html")


@inspector_page_router.get("/inspect/")
def page_with_slash() -> RedirectResponse:
    """Lead to the page: its files are named relative to it."""
    return RedirectResponse("../inspect")


@inspector_page_router.get("/inspect/{name}")
def file(name: Annotated[str, PathField(max_length=100)]) -> FileResponse:
    """Return one of the page's files."""
    path = _FILES.get(name)
    if path is None:
        raise NotThere("The inspector has no such file")
    return FileResponse(path, media_type=_MEDIA_TYPES[path.suffix], headers=_HEADERS)
