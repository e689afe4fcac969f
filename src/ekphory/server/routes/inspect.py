"""What the inspector asks for, and its page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as PathField
from fastapi.responses import FileResponse, RedirectResponse

from ekphory.agent_trace import RetrievalTrace
from ekphory.catalog.database import NotPermitted, NotThere
from ekphory.prompting.block import format_age
from ekphory.retrieval.presets import PRESETS
from ekphory.server import inspector
from ekphory.server.routes.context import MAY_READ, REFUSALS, TheReader, TheService
from ekphory.server.schemas.inspect import (
    HealthAnswer,
    InspectOutline,
    InspectPage,
    InspectSearch,
    InspectSearchAnswer,
    OutlineAnswer,
    PageAnswer,
    ShownAgent,
    ShownBar,
    ShownFinding,
    ShownHit,
    ShownMemory,
    ShownPreset,
    ShownReason,
    ShownStage,
)
from ekphory.service.episodes import Selection, shown_metadata
from ekphory.service.inspection import Examined, Outline, Probe, WaterfallRow
from ekphory.store.checks import examine
from ekphory.store.protocol import StoreHealth
from ekphory.types import MemoryRecord, now_utc

# What the service tells the inspector, in the shapes of the wire.


def shown_memory(record: MemoryRecord, now: datetime) -> ShownMemory:
    """Return a memory with its age at a moment."""
    return ShownMemory(
        id=record.id,
        text=record.text,
        at=record.at,
        age=format_age(record.at, now),
        created_at=record.created_at,
        expires_at=record.expires_at,
        pool=record.pool,
        type=record.type,
        importance=record.importance,
        predicted=sorted(record.predicted),
        producer=record.producer,
        produced_for=record.produced_for,
        role=record.role,
        agent=record.agent,
        user=record.user,
        session=record.session,
        sequence=record.sequence,
        source=record.source,
        path=record.path,
        heading=record.heading,
        lines=record.lines,
        supersedes=record.supersedes,
        metadata=shown_metadata(record.metadata),
    )


def search_answer(examined: Examined, query: str) -> InspectSearchAnswer:
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
                memory=shown_memory(hit.memory, examined.now),
                text=hit.text,
                score=hit.score,
                scores=_numbers(hit.scores),
                reasons=[ShownReason(kind=each.kind, sentence=each.sentence) for each in why],
            )
            for hit, why in told
        ],
        stages=[_stage(row) for row in examined.rows],
        agent=None if result.retrieval_trace is None else _agent(result.retrieval_trace),
        others=[shown_memory(record, examined.now) for record in examined.others],
    )


def outline_answer(outline: Outline) -> OutlineAnswer:
    """Return the counts of a project."""
    return OutlineAnswer(
        total=outline.total,
        pools=dict(outline.pools),
        types=dict(outline.types),
        importance=list(outline.importance),
        unit=outline.timeline.unit,
        bars=[
            ShownBar(begins=bar.begins, ends=bar.ends, counts=dict(bar.counts))
            for bar in outline.timeline.bars
        ],
    )


def health_answer(health: StoreHealth) -> HealthAnswer:
    """Return the state of a store, judged."""
    findings = examine(health)
    numbers = {name: value for name, value in asdict(health).items() if name != "orphaned_scopes"}
    return HealthAnswer(
        healthy=all(finding.state != "repairable" for finding in findings),
        findings=[
            ShownFinding(subject=each.subject, state=each.state, sentence=each.sentence)
            for each in findings
        ],
        numbers=numbers | {"orphaned_scopes": len(health.orphaned_scopes)},
    )


def _stage(row: WaterfallRow) -> ShownStage:
    return ShownStage(
        number=row.number,
        name=row.name,
        status=row.status,
        reason=row.reason,
        candidates_in=row.candidates_in,
        candidates_out=row.candidates_out,
        begins=row.begins,
        milliseconds=row.milliseconds,
        purpose=row.purpose,
        settings=_plain(row.settings),
        detail=_plain(row.detail),
    )


def _agent(trace: RetrievalTrace) -> ShownAgent:
    return ShownAgent(
        provider=trace.provider,
        selected_agent=trace.selected_agent_name,
        confidence=trace.confidence_score,
        milliseconds=trace.milliseconds,
        searches=trace.memory_search_called,
        fallback_trigger_reason=trace.fallback_trigger_reason,
        events=[event.to_dict() for event in trace.events],
    )


def _numbers(scores: Mapping[str, float]) -> dict[str, float]:
    """Only what JSON can carry."""
    return {name: value for name, value in scores.items() if math.isfinite(value)}


def _plain(value: Any) -> Any:  # noqa: ANN401  whatever a stage tells of itself
    """Return what a stage tells of itself as JSON has it; what JSON lacks, as text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


# What the inspector asks for: searches told in full, memories to look through, health.

inspect_router = APIRouter(prefix="/api/v2/inspect", tags=["Inspector"], responses=REFUSALS)


@inspect_router.get("/presets", dependencies=MAY_READ)
def list_presets(service: TheService) -> list[ShownPreset]:
    """List the presets that a search can name."""
    return [
        ShownPreset(name=name, summary=each.summary, default=name == service.models.preset.name)
        for name, each in PRESETS.items()
    ]


@inspect_router.post("/search")
def inspect_search(
    request: InspectSearch, service: TheService, caller: TheReader
) -> InspectSearchAnswer:
    """Search a project, and tell every stage, every score and every hop. Nothing is kept."""
    place = caller.place_of(request, "read")
    probe = Probe(
        query=request.query,
        preset=request.preset,
        limit=request.top_k,
        pools=None if request.pools is None else tuple(request.pools),
        filter=request.filter,
        min_score=request.min_score,
        now=request.now,
        time=request.time,
        agent_mode=request.agent_mode,
    )
    return search_answer(service.examination.search(place, probe), request.query)


@inspect_router.post("/outline")
def inspect_outline(
    request: InspectOutline, service: TheService, caller: TheReader
) -> OutlineAnswer:
    """Count a project's memories by pool, type, importance and time."""
    place = caller.place_of(request, "read")
    return outline_answer(service.browsing.outline(place, _selection(request)))


@inspect_router.post("/memories")
def inspect_memories(request: InspectPage, service: TheService, caller: TheReader) -> PageAnswer:
    """Read a page of a project's memories with all their fields."""
    found = service.browsing.page(
        caller.place_of(request, "read"),
        _selection(request),
        limit=request.page_size,
        offset=request.page_size * request.page_num,
        order=request.order,
    )
    now = now_utc()
    return PageAnswer(memories=[shown_memory(record, now) for record in found])


@inspect_router.get("/health")
def inspect_health(service: TheService, caller: TheReader) -> HealthAnswer:
    """Judge the whole store, as `ekphory doctor` does. For keys that are bound to nothing."""
    if caller.org is not None:
        raise NotPermitted(
            "The store's health is about all projects, and the key is bound to one organisation "
            "or project. Use a key that is bound to nothing."
        )
    return health_answer(service.health())


def _selection(request: InspectOutline) -> Selection:
    return Selection(
        pool=request.pool,
        type=request.type,
        since=request.since,
        until=request.until,
        least_importance=request.least_importance,
    )


# The inspector's page and its files, which anybody may load: they hold nothing of the store.

_FOLDER = Path(inspector.__file__).parent
_PAGE = "page.html"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FILES = {path.name: path for path in _FOLDER.iterdir() if path.suffix in _MEDIA_TYPES}
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    # No text can become markup, whatever the scripts do.
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}
_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    # Asked for anew after every upgrade; unchanged files are not sent again.
    "Cache-Control": "no-cache",
}

inspector_page_router = APIRouter(include_in_schema=False)


@inspector_page_router.get("/inspect")
def page() -> FileResponse:
    """Show the page."""
    return _file(_PAGE)


@inspector_page_router.get("/inspect/")
def page_with_slash() -> RedirectResponse:
    """Lead to the page: its files are named relative to it."""
    return RedirectResponse("../inspect")


@inspector_page_router.get("/inspect/{name}")
def file(name: Annotated[str, PathField(max_length=100)]) -> FileResponse:
    """Return one of the page's files."""
    return _file(name)


def _file(name: str) -> FileResponse:
    path = _FILES.get(name)
    if path is None:
        raise NotThere("The inspector has no such file")
    return FileResponse(path, media_type=_MEDIA_TYPES[path.suffix], headers=_HEADERS)
