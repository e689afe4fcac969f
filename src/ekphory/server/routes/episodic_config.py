"""Which parts of episodic memory a project's searches look into."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ekphory.catalog.failures import NotThere
from ekphory.catalog.projects import EpisodicSwitches
from ekphory.server.routes.context import NOT_THERE, REFUSALS, TheReader, TheService, TheWriter
from ekphory.server.wire.episodic_config import (
    ConfigureEpisodic,
    ConfigurePart,
    EpisodicConfig,
    PartConfig,
)
from ekphory.server.wire.names import InProject
from ekphory.service.memory_service import MemoryService
from ekphory.service.place import Place

router = APIRouter(
    prefix="/api/v2/memory/episodic",
    tags=["Episodic configuration"],
    responses=REFUSALS | NOT_THERE,
)


@router.post("/config/get")
def get_config(request: InProject, service: TheService, caller: TheReader) -> EpisodicConfig:
    """Read which parts are in use."""
    switches = _switches(service, caller.place_of(request, "read"))
    return EpisodicConfig(
        enabled=switches.enabled,
        long_term_memory_enabled=switches.long_term,
        short_term_memory_enabled=switches.short_term,
    )


@router.post("/config", status_code=204, response_class=Response)
def configure(request: ConfigureEpisodic, service: TheService, caller: TheWriter) -> None:
    """Switch parts on or off; what is said is kept all the same."""
    place = caller.place_of(request, "write")
    changes = {
        "enabled": request.enabled,
        "long_term": request.long_term_memory_enabled,
        "short_term": request.short_term_memory_enabled,
    }
    service.projects.switch(*place.owner, changes)


@router.post("/short_term/config/get")
def get_short_term(request: InProject, service: TheService, caller: TheReader) -> PartConfig:
    """Read whether the newest messages come with every search."""
    switches = _switches(service, caller.place_of(request, "read"))
    return PartConfig(enabled=switches.short_term)


@router.post("/short_term/config", status_code=204, response_class=Response)
def configure_short_term(request: ConfigurePart, service: TheService, caller: TheWriter) -> None:
    """Say whether the newest messages come with every search."""
    place = caller.place_of(request, "write")
    service.projects.switch(*place.owner, {"short_term": request.enabled})


@router.post("/long_term/config/get")
def get_long_term(request: InProject, service: TheService, caller: TheReader) -> PartConfig:
    """Read whether what answers a query is looked for."""
    switches = _switches(service, caller.place_of(request, "read"))
    return PartConfig(enabled=switches.long_term)


@router.post("/long_term/config", status_code=204, response_class=Response)
def configure_long_term(request: ConfigurePart, service: TheService, caller: TheWriter) -> None:
    """Say whether what answers a query is looked for."""
    place = caller.place_of(request, "write")
    service.projects.switch(*place.owner, {"long_term": request.enabled})


def _switches(service: MemoryService, place: Place) -> EpisodicSwitches:
    found = service.projects.find(*place.owner)
    if found is None:
        raise NotThere("Project not found")
    return found.switches
