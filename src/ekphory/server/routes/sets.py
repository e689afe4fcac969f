"""Semantic sets and set types."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ekphory.catalog.semantic_sets import SemanticSet, SetType
from ekphory.server.routes.context import NOT_THERE, REFUSALS, TheReader, TheService, TheWriter
from ekphory.server.wire.names import InProject
from ekphory.server.wire.semantic import (
    ConfigureSet,
    CreateSetType,
    GetSetId,
    ListSets,
    NamedSetType,
    SetEntry,
    SetId,
    Sets,
    SetTypeEntry,
    SetTypeId,
    SetTypes,
)
from ekphory.service.set_verbs import Level

router = APIRouter(prefix="/api/v2/memories/semantic", tags=["Semantic sets"], responses=REFUSALS)


@router.post("/set_type", status_code=201)
def create_set_type(request: CreateSetType, service: TheService, caller: TheWriter) -> SetTypeId:
    """Make a set type: one set for each combination of values of its metadata tags."""
    created = service.sets.add_type(
        caller.place_of(request, "write"),
        request.metadata_tags,
        level=_level(request),
        name=request.name,
        description=request.description,
    )
    return SetTypeId(set_type_id=created)


@router.post("/set_type/list")
def list_set_types(request: InProject, service: TheService, caller: TheReader) -> SetTypes:
    """List the set types of a project and of its organisation."""
    found = service.sets.types(caller.place_of(request, "read"))
    return SetTypes(
        set_types=[
            SetTypeEntry(
                id=each.id,
                is_org_level=each.project is None,
                tags=list(each.tags),
                name=each.name,
                description=each.description,
            )
            for each in found
        ]
    )


@router.post("/set_type/delete", status_code=204, responses=NOT_THERE, response_class=Response)
def delete_set_type(request: NamedSetType, service: TheService, caller: TheWriter) -> None:
    """Remove a set type with its category templates; its sets stay."""
    service.sets.delete_type(caller.place_of(request, "write"), request.set_type_id)


@router.post("/set_id/get")
def get_set_id(request: GetSetId, service: TheService, caller: TheWriter) -> SetId:
    """Give the id of the set for some metadata; the same metadata always has the same."""
    found = service.sets.name_of(
        caller.place_of(request, "write"),
        request.metadata_tags,
        request.set_metadata,
        level=_level(request),
    )
    return SetId(set_id=found)


@router.post("/set_id/list")
def list_sets(request: ListSets, service: TheService, caller: TheReader) -> Sets:
    """List the sets of a project and of its organisation."""
    place = caller.place_of(request, "read")
    types = service.sets.types(place)
    found = service.sets.listed(place, request.set_metadata)
    return Sets(sets=[_entry(each, types) for each in found])


@router.post("/set/configure", status_code=204, responses=NOT_THERE, response_class=Response)
def configure_set(request: ConfigureSet, service: TheService, caller: TheWriter) -> None:
    """Say which models a set is to use."""
    service.sets.configure(
        caller.place_of(request, "write"),
        request.set_id,
        embedder=request.embedder_name,
        llm=request.llm_name,
    )


def _level(request: CreateSetType | GetSetId) -> Level:
    return "org" if request.is_org_level else "project"


def _entry(semantic_set: SemanticSet, types: list[SetType]) -> SetEntry:
    named = next((each for each in types if each.covers(semantic_set)), None)
    return SetEntry(
        id=semantic_set.id,
        is_org_level=semantic_set.project is None,
        tags=list(semantic_set.tags),
        name=named.name if named else None,
        description=named.description if named else None,
    )
