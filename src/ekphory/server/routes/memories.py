"""Memories: added, searched, listed, deleted; and what a search did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Response

from ekphory.catalog.failures import NotThere
from ekphory.server.metrics import Metrics
from ekphory.server.routes.context import (
    NOT_THERE,
    REFUSALS,
    TheMetrics,
    TheReader,
    TheService,
    TheWriter,
)
from ekphory.server.shaping import cited_features, found_episodes, listed_episodes
from ekphory.server.wire.memories import (
    AddedMemories,
    AddedMemory,
    AddMemories,
    DeleteEpisodes,
    DeleteFeatures,
    ListAnswer,
    ListContent,
    ListMemories,
    Message,
    SearchAnswer,
    SearchContent,
    SearchMemories,
)
from ekphory.service.episode import EpisodeQuery
from ekphory.service.episode import Message as Said
from ekphory.service.features import FeatureQuery
from ekphory.service.memory_service import KINDS, Found, Question

TRACE_ID = "X-Trace-ID"
TraceWanted = Annotated[
    bool, Header(alias="X-Retrieval-Trace", description="As the field retrieval_trace.")
]
router = APIRouter(prefix="/api/v2", tags=["Memories"], responses=REFUSALS)


@router.post("/memories")
def add_memories(
    request: AddMemories, service: TheService, caller: TheWriter, metrics: TheMetrics
) -> AddedMemories:
    """Remember messages; on return they are durable. Makes the project, if need be."""
    place = caller.place_of(request, "write")
    service.projects.ensure(*place.owner)
    kinds = set(request.types)
    ids = service.episodes.add(
        place,
        [_said(message) for message in request.messages],
        # Said to be of one kind only; else the embedder predicts it.
        kind=request.types[0] if len(kinds) == 1 else None,
    )
    metrics.added.inc(len(ids))
    if not kinds or "semantic" in kinds:
        service.extraction.learn_from(place, ids)
    return AddedMemories(results=[AddedMemory(uid=each) for each in service.uids.shown(place, ids)])


@router.post("/memories/search", response_model=SearchAnswer)
def search_memories(
    request: SearchMemories,
    service: TheService,
    caller: TheReader,
    metrics: TheMetrics,
    trace_wanted: TraceWanted = False,
) -> Response:
    """Find what answers a question. The header X-Trace-ID names the trace of the search."""
    place = caller.place_of(request, "read")
    found = service.search(place, _question(request))
    _measure(found, metrics)
    content = SearchContent()
    if found.episodes is not None:
        content.episodic_memory = found_episodes(found.episodes, place, service.uids)
    if found.features is not None:
        content.semantic_memory = cited_features(found.features, place, service.uids)
    if request.retrieval_trace or trace_wanted:
        content.retrieval_trace = dict(found.trace)
    return _written(SearchAnswer(content=content), {TRACE_ID: found.trace["trace_id"]})


@router.post("/memories/list", response_model=ListAnswer)
def list_memories(request: ListMemories, service: TheService, caller: TheReader) -> Response:
    """List a page of episodes in the order in which they were said, and of features."""
    place = caller.place_of(request, "read")
    kinds = KINDS if request.type is None else (request.type,)
    limit, offset = request.page_size, request.page_size * request.page_num
    content = ListContent()
    if "episodic" in kinds:
        records = service.episodes.page(place, request.filter, limit=limit, offset=offset)
        content.episodic_memory = listed_episodes(records, place, service.uids)
    if "semantic" in kinds:
        query = FeatureQuery(filter=request.filter, set_metadata=request.set_metadata)
        features = service.features.page(place, query, limit=limit, offset=offset)
        content.semantic_memory = cited_features(features, place, service.uids)
    return _written(ListAnswer(content=content))


@router.post(
    "/memories/episodic/delete", status_code=204, responses=NOT_THERE, response_class=Response
)
def delete_episodic(request: DeleteEpisodes, service: TheService, caller: TheWriter) -> None:
    """Forget episodes: all that are named, or none where one of them is not there."""
    place = caller.place_of(request, "write")
    service.episodes.delete(place, service.uids.stored(place, request.ids))


@router.post(
    "/memories/semantic/delete", status_code=204, responses=NOT_THERE, response_class=Response
)
def delete_semantic(request: DeleteFeatures, service: TheService, caller: TheWriter) -> None:
    """Forget features: all that are named, or none where one of them is not there."""
    service.features.delete(caller.place_of(request, "write"), request.ids)


@router.get("/traces/{trace_id}", responses=NOT_THERE)
def get_trace(
    trace_id: Annotated[str, Path(max_length=100)], service: TheService, caller: TheReader
) -> dict[str, Any]:
    """Read what an earlier search did."""
    found = service.trace(trace_id)
    if not caller.may_see(found.org, found.project):
        # Told like one that is not there, so that nobody learns of other projects.
        raise NotThere("Trace does not exist")
    return {
        "org_id": found.org,
        "project_id": found.project,
        "created_at": found.created_at,
        **found.content,
    }


def _written(
    answer: SearchAnswer | ListAnswer, headers: Mapping[str, str] | None = None
) -> Response:
    """Write an answer here, where it was made: FastAPI would check it again, in another thread."""
    content = answer.model_dump_json(exclude_none=True)
    return Response(content, media_type="application/json", headers=headers)


def _said(message: Message) -> Said:
    return Said(
        content=message.content,
        producer=message.producer,
        produced_for=message.produced_for,
        role=message.role,
        at=message.timestamp,
        metadata=message.metadata,
    )


def _question(request: SearchMemories) -> Question:
    threshold = request.score_threshold
    return Question(
        episodes=EpisodeQuery(
            text=request.query,
            limit=request.top_k,
            filter=request.filter,
            # Clients of rerankers with open scales send thresholds outside [0, 1].
            min_score=None if threshold is None or threshold <= 0 else min(threshold, 1.0),
            expand=request.expand_context,
            agent_mode=request.agent_mode,
        ),
        kinds=tuple(kind for kind in KINDS if kind in (request.types or KINDS)),
        set_metadata=request.set_metadata,
    )


def _measure(found: Found, metrics: Metrics) -> None:
    for search in found.trace["searches"]:
        for stage in search["stages"]:
            metrics.stage(stage["name"], stage["milliseconds"])
