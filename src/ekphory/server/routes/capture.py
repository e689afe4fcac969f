"""What is worth remembering of a dialogue is kept."""

from __future__ import annotations

from fastapi import APIRouter

from ekphory.server.routes.context import REFUSALS, TheService, TheWriter
from ekphory.server.schemas.capture import Capture, CaptureAnswer, read_said, show_capture

capture_router = APIRouter(prefix="/api/v2/memories", tags=["Capture"], responses=REFUSALS)


@capture_router.post("/capture")
def capture(request: Capture, service: TheService, caller: TheWriter) -> CaptureAnswer:
    """Keep what is worth remembering of messages, without their secrets.

    No language model is asked. Repeating the same request adds nothing.
    """
    place = caller.place_of(request, "write")
    service.projects.ensure(*place.owner)
    with service.memory(place) as memory:
        report = memory.capture(
            read_said(request.messages),
            session=request.session,
            source=request.source,
            labels=request.labels,
            redact=request.redact,
            since=request.since,
        )
    return show_capture(report, place, service.uids)
