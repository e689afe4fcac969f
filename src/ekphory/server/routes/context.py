"""What every endpoint gets: the service, the caller, and the statuses that it documents."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request

from ekphory.catalog.access_keys import Rights
from ekphory.server.auth import Caller
from ekphory.server.options import Limits
from ekphory.server.request_log import Metrics
from ekphory.server.schemas.names import ErrorAnswer, InProject
from ekphory.service.handles import Place
from ekphory.service.memory_service import MemoryService

_REFUSALS = {
    401: "The key is missing or not known.",
    403: "The key does not reach there.",
    408: "The body took too long to arrive.",
    413: "More at a time than is allowed.",
    422: "The request cannot be used.",
    429: "Too many requests; see Retry-After.",
    503: "Not at the moment; see Retry-After.",
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": text} for status, text in _REFUSALS.items()
}
"""Statuses that every endpoint may answer with."""
MODEL_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"description": text} for status, text in _REFUSALS.items()
}
"""The same, for paths whose errors have the shapes of other services."""
NOT_THERE: dict[int | str, dict[str, Any]] = {
    404: {"model": ErrorAnswer, "description": "It does not exist, or not here."}
}
ALREADY_THERE: dict[int | str, dict[str, Any]] = {
    409: {"model": ErrorAnswer, "description": "There is one of that name."}
}


# Without `async` each of these would be sent to a thread of its own, which costs more than it does.


async def _service(request: Request) -> MemoryService:
    service: MemoryService = request.app.state.service
    return service


async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


def caller_with(needed: Rights) -> Any:  # noqa: ANN401  what FastAPI takes
    """Return the dependency on a caller who has a right anywhere at all."""

    async def check(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
        caller.check_rights(needed)
        return caller

    return Depends(check)


async def _metrics(request: Request) -> Metrics:
    metrics: Metrics = request.app.state.metrics
    return metrics


async def _limits(request: Request) -> Limits:
    limits: Limits = request.app.state.limits
    return limits


def existing_place(request: InProject, service: MemoryService, caller: Caller) -> Place:
    """Return the project that a request reads; a request that names one must name one that exists.

    Raises:
        NotPermitted: The key does not reach there, or may not read.
        NotThere: There is no such project.
    """
    place = caller.place_of(request, "read")
    if request.model_fields_set & InProject.model_fields.keys():
        service.get_project(place)
    return place


TheService = Annotated[MemoryService, Depends(_service)]
_READER = caller_with("read")
MAY_READ = (_READER,)
"""Needed where a path acts for no project: the right to read anywhere at all."""
TheReader = Annotated[Caller, _READER]
"""Whoever may read anywhere at all; told before the request's body is looked at."""
TheWriter = Annotated[Caller, caller_with("write")]
"""Likewise, whoever may write."""
TheAdmin = Annotated[Caller, caller_with("admin")]
"""Likewise, whoever may make and remove projects."""
TheMetrics = Annotated[Metrics, Depends(_metrics)]
TheLimits = Annotated[Limits, Depends(_limits)]
