"""Categories, templates and tags."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ekphory.server.routes.context import (
    ALREADY_THERE,
    NOT_THERE,
    REFUSALS,
    TheReader,
    TheService,
    TheWriter,
)
from ekphory.server.wire.semantic import (
    AddCategory,
    AddTag,
    AddTemplate,
    CategoryEntry,
    CategoryId,
    DisableCategory,
    NamedCategory,
    NamedSetType,
    NamedTag,
    SetIds,
    TagId,
    TemplateEntry,
    Templates,
)
from ekphory.service.category_verbs import CategoryText

router = APIRouter(
    prefix="/api/v2/memories/semantic/category", tags=["Semantic categories"], responses=REFUSALS
)
_FROM_SET_TYPE = "set_type"


@router.post("", status_code=201, responses=ALREADY_THERE)
def add_category(request: AddCategory, service: TheService, caller: TheWriter) -> CategoryId:
    """Add a category to a set."""
    added = service.categories.add(
        caller.place_of(request, "write"), request.set_id, _text(request)
    )
    return CategoryId(category_id=added)


@router.post("/get", responses=NOT_THERE)
def get_category(request: NamedCategory, service: TheService, caller: TheReader) -> CategoryEntry:
    """Read a category or template."""
    found = service.categories.get(caller.place_of(request, "read"), request.category_id)
    return CategoryEntry(
        id=found.id, name=found.name, prompt=found.prompt, description=found.description
    )


@router.post("/delete", status_code=204, responses=NOT_THERE, response_class=Response)
def delete_category(request: NamedCategory, service: TheService, caller: TheWriter) -> None:
    """Remove a category or template with its tags."""
    service.categories.delete(caller.place_of(request, "write"), request.category_id)


@router.post("/disable", status_code=204, responses=NOT_THERE, response_class=Response)
def disable_category(request: DisableCategory, service: TheService, caller: TheWriter) -> None:
    """Switch a category off for one set, which may have it from its type."""
    service.categories.disable(
        caller.place_of(request, "write"), request.set_id, request.category_name
    )


@router.post("/set_ids/get", responses=NOT_THERE)
def get_set_ids(request: NamedCategory, service: TheService, caller: TheReader) -> SetIds:
    """Name the sets that have a category."""
    found = service.categories.set_ids(caller.place_of(request, "read"), request.category_id)
    return SetIds(set_ids=found)


@router.post("/template", status_code=201, responses=NOT_THERE | ALREADY_THERE)
def add_template(request: AddTemplate, service: TheService, caller: TheWriter) -> CategoryId:
    """Add a category that all sets of a type have."""
    added = service.categories.add_template(
        caller.place_of(request, "write"), request.set_type_id, _text(request)
    )
    return CategoryId(category_id=added)


@router.post("/template/list", responses=NOT_THERE)
def list_templates(request: NamedSetType, service: TheService, caller: TheReader) -> Templates:
    """List the templates of a set type."""
    found = service.categories.templates(caller.place_of(request, "read"), request.set_type_id)
    return Templates(
        categories=[
            TemplateEntry(
                id=each.id,
                name=each.name,
                origin_type=_FROM_SET_TYPE,
                origin_id=each.set_type_id,
                inherited=False,
            )
            for each in found
        ]
    )


@router.post("/tag", status_code=201, responses=NOT_THERE | ALREADY_THERE)
def add_tag(request: AddTag, service: TheService, caller: TheWriter) -> TagId:
    """Add a tag to a category."""
    added = service.categories.add_tag(
        caller.place_of(request, "write"),
        request.category_id,
        request.tag_name,
        request.tag_description,
    )
    return TagId(tag_id=added)


@router.post("/tag/delete", status_code=204, responses=NOT_THERE, response_class=Response)
def delete_tag(request: NamedTag, service: TheService, caller: TheWriter) -> None:
    """Remove a tag."""
    service.categories.delete_tag(caller.place_of(request, "write"), request.tag_id)


def _text(request: AddCategory | AddTemplate) -> CategoryText:
    return CategoryText(request.category_name, request.prompt, request.description)
