"""What every endpoint gets: a session of its caller, and the statuses that it documents."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request

from ekphory.catalog.access_keys import Rights
from ekphory.catalog.database import NotThere
from ekphory.memory import Memory
from ekphory.scope import DEFAULT_NAME
from ekphory.server.auth import Caller
from ekphory.server.options import Limits
from ekphory.server.request_log import Metrics
from ekphory.server.schemas.names import ErrorAnswer, InProject
from ekphory.service.handles import Place
from ekphory.service.memory_service import MemoryService

Responses = dict[int | str, dict[str, Any]]
MODEL_REFUSALS: Responses = {
    401: {"description": "The key is missing or not known."},
    403: {"description": "The key does not reach there."},
    408: {"description": "The body took too long to arrive."},
    413: {"description": "More at a time than is allowed."},
    422: {"description": "The request cannot be used."},
    429: {"description": "Too many requests; see Retry-After."},
    503: {"description": "Not at the moment; see Retry-After."},
}
"""Statuses that every endpoint may answer with; errors have the shapes of other services."""
REFUSALS = {status: told | {"model": ErrorAnswer} for status, told in MODEL_REFUSALS.items()}
"""The same, for paths whose errors have ours."""
NOT_THERE: Responses = {
    404: {"model": ErrorAnswer, "description": "It does not exist, or not here."}
}
ALREADY_THERE: Responses = {
    409: {"model": ErrorAnswer, "description": "There is one of that name."}
}


@dataclass(frozen=True, slots=True)
class RouteSession:
    """Whoever asks, the right that is needed, and what answers, counts and limits."""

    caller: Caller
    needed: Rights
    service: MemoryService
    metrics: Metrics
    limits: Limits

    def place(self, request: InProject) -> Place:
        """Return the project of a request; one that is named and only read must exist.

        Raises:
            NotPermitted: The key does not reach there, or not for this.
            NotThere: There is no such project.
        """
        place = self.caller.place_of(request, self.needed)
        if self.needed == "read":
            self._check_named(request, place)
        return place

    def existing(self, request: InProject) -> Place:
        """Return the project of a request; one that is named must exist, also to be changed.

        Raises:
            NotPermitted, NotThere: As of `place`.
        """
        place = self.caller.place_of(request, self.needed)
        self._check_named(request, place)
        return place

    def _check_named(self, request: InProject, place: Place) -> None:
        if not request.model_fields_set & InProject.model_fields.keys():
            return
        try:
            self.service.get_project(place)
        except NotThere as error:
            raise NotThere(f"{error}{self.point_to_default(request)}") from error

    def point_to_default(self, request: InProject) -> str:
        """Return how to name what Python wrote, for a request that names no org or no project.

        Empty where it names both, or the caller can see nothing there.
        """
        given = request.model_dump(include=request.model_fields_set & InProject.model_fields.keys())
        if len(given) == len(InProject.model_fields):
            return ""
        for each in self.service.list_projects():
            named = {"org_id": each.org, "project_id": each.project}
            seen = each.org == DEFAULT_NAME and self.caller.may_see(each.org, each.project)
            if seen and named.items() >= given.items():
                asked = json.dumps(named, ensure_ascii=False).strip("{}")
                return f" What Python or the command line wrote is found with {asked}."
        return ""

    def memory(self, request: InProject) -> Memory:
        """Open a handle on the project of a request, likewise."""
        return self.service.memory(self.place(request))


def begin_session(needed: Rights) -> Any:  # noqa: ANN401  what FastAPI takes
    """Return the dependency on a caller who has a right anywhere at all."""

    # Without `async` it would be sent to a thread of its own, which costs more than it does.
    async def begin(request: Request) -> RouteSession:
        caller: Caller = request.state.caller
        caller.check_rights(needed)
        state = request.app.state
        return RouteSession(caller, needed, state.service, state.metrics, state.limits)

    return Depends(begin)


ToRead = Annotated[RouteSession, begin_session("read")]
"""Of whoever may read anywhere at all; told before the request's body is looked at."""
ToWrite = Annotated[RouteSession, begin_session("write")]
"""Likewise, of whoever may write."""
ToAdminister = Annotated[RouteSession, begin_session("admin")]
"""Likewise, of whoever may make and remove projects."""
