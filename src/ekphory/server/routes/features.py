"""Features of semantic memory."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ekphory.server.routes.context import (
    NOT_THERE,
    REFUSALS,
    TheMetrics,
    TheReader,
    TheService,
    TheWriter,
)
from ekphory.server.shaping import shown_feature
from ekphory.server.wire.memories import SemanticFeature
from ekphory.server.wire.semantic import AddFeature, FeatureId, GetFeature, UpdateFeature
from ekphory.service.feature import Feature
from ekphory.service.semantic_names import texts

router = APIRouter(
    prefix="/api/v2/memories/semantic/feature", tags=["Semantic memory"], responses=REFUSALS
)
_NAMES = {"category_name": "category", "tag": "tag", "feature": "name", "value": "value"}


@router.post("", status_code=201)
def add_feature(
    request: AddFeature, service: TheService, caller: TheWriter, metrics: TheMetrics
) -> FeatureId:
    """Remember a feature. A set that is not known becomes the project's."""
    place = caller.place_of(request, "write")
    feature = Feature(
        set_id=request.set_id,
        category=request.category_name,
        tag=request.tag,
        name=request.feature,
        value=request.value,
        metadata=texts(request.feature_metadata),
        citations=tuple(service.uids.stored(place, request.citations or ())),
    )
    service.projects.ensure(*place.owner)
    feature_id = service.features.add(place, feature)
    metrics.added.inc()
    return FeatureId(feature_id=feature_id)


@router.post("/get", responses=NOT_THERE, response_model_exclude_none=True)
def get_feature(request: GetFeature, service: TheService, caller: TheReader) -> SemanticFeature:
    """Read a feature; with `load_citations` also which episodes it was learnt from."""
    place = caller.place_of(request, "read")
    feature = service.features.get(place, request.feature_id)
    shown = service.uids.shown(place, feature.citations) if request.load_citations else None
    return shown_feature(feature, citations=shown)


@router.post("/update", status_code=204, responses=NOT_THERE, response_class=Response)
def update_feature(request: UpdateFeature, service: TheService, caller: TheWriter) -> None:
    """Change fields of a feature; those that are null stay."""
    place = caller.place_of(request, "write")
    given = {own: getattr(request, wire) for wire, own in _NAMES.items()}
    if request.metadata is not None:
        given["metadata"] = request.metadata
    changes = {name: value for name, value in given.items() if value is not None}
    service.features.update(place, request.feature_id, changes)
