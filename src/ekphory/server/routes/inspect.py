"""What the inspector asks for: searches told in full, memories to look through, health."""

from __future__ import annotations

from fastapi import APIRouter

from ekphory.catalog.failures import NotPermitted
from ekphory.moments import now_utc
from ekphory.retrieval.presets import PRESETS
from ekphory.server.inspect_shaping import (
    health_answer,
    outline_answer,
    search_answer,
    shown_memory,
)
from ekphory.server.routes.context import MAY_READ, REFUSALS, TheReader, TheService
from ekphory.server.wire.inspect import (
    HealthAnswer,
    InspectOutline,
    InspectPage,
    InspectSearch,
    InspectSearchAnswer,
    OutlineAnswer,
    PageAnswer,
    ShownPreset,
)
from ekphory.service.examination import Probe
from ekphory.service.selection import Selection

router = APIRouter(prefix="/api/v2/inspect", tags=["Inspector"], responses=REFUSALS)


@router.get("/presets", dependencies=MAY_READ)
def list_presets(service: TheService) -> list[ShownPreset]:
    """List the presets that a search can name."""
    return [
        ShownPreset(name=name, summary=each.summary, default=name == service.models.preset.name)
        for name, each in PRESETS.items()
    ]


@router.post("/search")
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


@router.post("/outline")
def inspect_outline(
    request: InspectOutline, service: TheService, caller: TheReader
) -> OutlineAnswer:
    """Count a project's memories by pool, type, importance and time."""
    place = caller.place_of(request, "read")
    return outline_answer(service.browsing.outline(place, _selection(request)))


@router.post("/memories")
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


@router.get("/health")
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
