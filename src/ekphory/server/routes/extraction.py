"""How far the learning of features from episodes is, and another try where it was given up."""

from __future__ import annotations

from fastapi import APIRouter

from ekphory.server.routes.context import REFUSALS, TheReader, TheService, TheWriter
from ekphory.server.wire.extraction import ExtractionAnswer, ExtractionFailure, TriedAgain
from ekphory.server.wire.names import InProject

router = APIRouter(
    prefix="/api/v2/memories/semantic/extraction", tags=["Semantic memory"], responses=REFUSALS
)


@router.post("")
def get_extraction(request: InProject, service: TheService, caller: TheReader) -> ExtractionAnswer:
    """Tell from how many episodes of a project features are still to be learnt, and what failed."""
    place = caller.place_of(request, "read")
    state = service.extraction.state(place)
    shown = service.uids.shown(place, [each.episode for each in state.failures])
    return ExtractionAnswer(
        enabled=state.enabled,
        waiting=state.waiting,
        failed=state.failed,
        unqueued=state.unqueued,
        out_of_order=state.out_of_order,
        failures=[
            ExtractionFailure(uid=uid, reason=each.reason, attempts=each.attempts)
            for uid, each in zip(shown, state.failures, strict=True)
        ],
    )


@router.post("/retry")
def retry_extraction(request: InProject, service: TheService, caller: TheWriter) -> TriedAgain:
    """Let the episodes that were given up be read anew."""
    return TriedAgain(waiting=service.extraction.try_again(caller.place_of(request, "write")))
