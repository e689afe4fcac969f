"""What supersedes what: decided, taken back, listed; timelines and profiles."""

from __future__ import annotations

from fastapi import APIRouter

from ekphory.server.routes.context import (
    NOT_THERE,
    REFUSALS,
    TheReader,
    TheService,
    TheWriter,
    existing_place,
)
from ekphory.server.schemas.revisions import (
    AskProfile,
    AskTimeline,
    ConflictsAnswer,
    ListConflicts,
    ProfileAnswer,
    Settle,
    Settled,
    Supersede,
    TimelineAnswer,
    Undone,
    Unsupersede,
    show_profile,
    show_revisions,
    show_states,
)
from ekphory.types import Revision

revisions_router = APIRouter(
    prefix="/api/v2/memories", tags=["Revisions"], responses=REFUSALS | NOT_THERE
)


@revisions_router.post("/supersede")
def supersede(request: Supersede, service: TheService, caller: TheWriter) -> Revision:
    """Say that one memory takes the place of another; both are kept, and it can be taken back."""
    place = caller.place_of(request, "write")
    old, by = service.uids.stored(place, [request.old, request.by])
    with service.memory(place) as memory:
        made = memory.supersede(old, by=by, kind=request.kind, at=request.at)
    return show_revisions([made], place, service.uids)[0]


@revisions_router.post("/unsupersede")
def unsupersede(request: Unsupersede, service: TheService, caller: TheWriter) -> Undone:
    """Take back a decision, or all of a batch; or set a conflict aside."""
    with service.memory(caller.place_of(request, "write")) as memory:
        return Undone(undone=memory.unsupersede(revision=request.revision, batch=request.batch))


@revisions_router.post("/conflicts")
def list_conflicts(
    request: ListConflicts, service: TheService, caller: TheReader
) -> ConflictsAnswer:
    """List what may contradict other memories, where it is not sure enough to act.

    A scan may decide, and so needs the right to write.
    """
    place = existing_place(request, service, caller)
    if request.scan:
        caller.place_of(request, "write")
    with service.memory(place) as memory:
        found = memory.conflicts(scan=request.scan, limit=request.limit)
    return ConflictsAnswer(conflicts=show_revisions(found, place, service.uids))


@revisions_router.post("/timeline")
def get_timeline(request: AskTimeline, service: TheService, caller: TheReader) -> TimelineAnswer:
    """Read the states of a topic in the order in which they held."""
    place = existing_place(request, service, caller)
    with service.memory(place) as memory:
        states = memory.timeline(request.topic, k=request.k, now=request.now)
    return TimelineAnswer(states=show_states(states, place, service.uids))


@revisions_router.post("/profile")
def get_profile(request: AskProfile, service: TheService, caller: TheReader) -> ProfileAnswer:
    """Read the lasting facts and preferences that hold now, each with its evidence."""
    place = existing_place(request, service, caller)
    with service.memory(place) as memory:
        entries = memory.profile(user=request.user, k=request.k, now=request.now)
    return ProfileAnswer(profile=show_profile(entries, place, service.uids))


@revisions_router.post("/settle")
def settle(request: Settle, service: TheService, caller: TheReader) -> Settled:
    """Wait until all that was written is compared with earlier memories; false if it takes longer.

    A waiting request keeps one of the server's threads.
    """
    place = existing_place(request, service, caller)
    with service.memory(place) as memory:
        try:
            memory.settle(request.timeout)
        except TimeoutError:
            return Settled(settled=False)
    return Settled(settled=True)
