"""Semantic memory: features, sets, categories, and their learning from episodes."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from ekphory.server.routes.context import ALREADY_THERE, NOT_THERE, REFUSALS, ToRead, ToWrite
from ekphory.server.routes.memories import SemanticFeature, show_feature
from ekphory.server.schemas.names import InProject, JsonMetadata, Metadata, Tags, Wire
from ekphory.service.semantic import Feature
from ekphory.service.sets import SemanticSet, SetType, texts


class AddFeature(InProject):
    """A feature to be remembered."""

    set_id: str
    category_name: str
    tag: str
    feature: str
    value: str
    feature_metadata: JsonMetadata | None = None
    citations: Tags | None = None


class FeatureId(BaseModel):
    """The id of a feature."""

    feature_id: str


class GetFeature(InProject):
    """A feature to be read."""

    feature_id: str
    load_citations: bool = False


class UpdateFeature(InProject):
    """Fields of a feature to be changed; those that are null stay."""

    feature_id: str
    category_name: str | None = None
    tag: str | None = None
    feature: str | None = None
    value: str | None = None
    metadata: Metadata | None = None


class CreateSetType(InProject):
    """A set type to be made."""

    is_org_level: bool = False
    metadata_tags: Tags
    name: str | None = None
    description: str | None = None


class SetTypeId(BaseModel):
    """The id of a set type."""

    set_type_id: str


class NamedSetType(InProject):
    """Names a set type."""

    set_type_id: str


class SetTypeEntry(BaseModel):
    """A set type."""

    model_config = ConfigDict(from_attributes=True)

    id: str | None
    is_org_level: bool
    tags: list[str]
    name: str | None
    description: str | None


class SetTypes(BaseModel):
    """The set types that a project may use."""

    set_types: list[SetTypeEntry]


class GetSetId(InProject):
    """The metadata whose set is wanted."""

    is_org_level: bool = False
    metadata_tags: Tags
    set_metadata: JsonMetadata | None = None


class SetId(BaseModel):
    """The id of a set."""

    set_id: str


class ListSets(InProject):
    """What the listed sets are about; null for all."""

    set_metadata: JsonMetadata | None = None


class SetEntry(SetTypeEntry):
    """A set."""

    id: str


class Sets(BaseModel):
    """Sets."""

    sets: list[SetEntry]


class ConfigureSet(InProject):
    """Models that a set is to use."""

    set_id: str
    embedder_name: str | None = None
    llm_name: str | None = None


class NamedCategory(InProject):
    """Names a category or template."""

    category_id: str


class CategoryEntry(BaseModel):
    """A category."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    prompt: str
    description: str | None


class AddCategory(InProject):
    """A category for a set."""

    set_id: str
    category_name: str
    prompt: str
    description: str | None = None


class AddTemplate(InProject):
    """A category for all sets of a type."""

    set_type_id: str
    category_name: str
    prompt: str
    description: str | None = None


class CategoryId(BaseModel):
    """The id of a category or template."""

    category_id: str


class TemplateEntry(BaseModel):
    """A template."""

    id: str | None
    name: str
    origin_type: str | None
    origin_id: str | None
    inherited: bool | None


class Templates(BaseModel):
    """The templates of a set type."""

    categories: list[TemplateEntry]


class DisableCategory(InProject):
    """A category that a set is to do without."""

    set_id: str
    category_name: str


class SetIds(BaseModel):
    """Ids of sets."""

    set_ids: list[str]


class AddTag(InProject):
    """A tag for a category."""

    category_id: str
    tag_name: str
    tag_description: str


class TagId(BaseModel):
    """The id of a tag."""

    tag_id: str


class NamedTag(InProject):
    """Names a tag."""

    tag_id: str = Field(examples=["7"])


# The learning of features from episodes.


class ExtractionFailure(BaseModel):
    """An episode from which nothing could be learnt."""

    uid: str
    reason: str
    attempts: int


class ExtractionAnswer(Wire):
    """How far the learning is."""

    enabled: bool
    """Whether a language model is configured."""

    waiting: int
    """Episodes that are still to be read."""

    failed: int
    """Episodes that were given up."""

    unqueued: int
    """Episodes that could not be queued since the server started, and are not read."""

    out_of_order: str | None
    """Why nothing can be learnt at the moment."""

    failures: list[ExtractionFailure]
    """The newest of those given up."""


class TriedAgain(BaseModel):
    """How many episodes are read anew."""

    waiting: int


# The endpoints.

features_router = APIRouter(
    prefix="/api/v2/memories/semantic/feature", tags=["Semantic memory"], responses=REFUSALS
)
_NAMES = {"category_name": "category", "tag": "tag", "feature": "name", "value": "value"}


@features_router.post("", status_code=201)
def add_feature(request: AddFeature, session: ToWrite) -> FeatureId:
    """Remember a feature. A set that is not known becomes the project's."""
    place = session.place(request)
    feature = Feature(
        set_id=request.set_id,
        category=request.category_name,
        tag=request.tag,
        name=request.feature,
        value=request.value,
        metadata=texts(request.feature_metadata),
        citations=tuple(session.service.uids.stored(place, request.citations or ())),
    )
    session.service.ensure_project(place)
    feature_id = session.service.features.add(place, feature)
    session.service.ensure_project(place)  # it may have been deleted meanwhile
    session.metrics.added.inc()
    return FeatureId(feature_id=feature_id)


@features_router.post("/get", responses=NOT_THERE, response_model_exclude_none=True)
def get_feature(request: GetFeature, session: ToRead) -> SemanticFeature:
    """Read a feature; with `load_citations` also which episodes it was learnt from."""
    place = session.place(request)
    feature = session.service.features.get(place, request.feature_id)
    shown = session.service.uids.shown(place, feature.citations) if request.load_citations else None
    return show_feature(feature, citations=shown)


@features_router.post("/update", status_code=204, responses=NOT_THERE, response_class=Response)
def update_feature(request: UpdateFeature, session: ToWrite) -> None:
    """Change fields of a feature; those that are null stay."""
    place = session.place(request)
    given = {own: getattr(request, wire) for wire, own in _NAMES.items()}
    if request.metadata is not None:
        given["metadata"] = request.metadata
    changes = {name: value for name, value in given.items() if value is not None}
    session.service.features.update(place, request.feature_id, changes)


# Semantic sets and set types.

sets_router = APIRouter(
    prefix="/api/v2/memories/semantic", tags=["Semantic sets"], responses=REFUSALS
)


@sets_router.post("/set_type", status_code=201)
def create_set_type(request: CreateSetType, session: ToWrite) -> SetTypeId:
    """Make a set type: one set for each combination of values of its metadata tags."""
    created = session.service.sets.add_type(
        session.place(request),
        request.metadata_tags,
        is_org_level=request.is_org_level,
        name=request.name,
        description=request.description,
    )
    return SetTypeId(set_type_id=created)


@sets_router.post("/set_type/list")
def list_set_types(request: InProject, session: ToRead) -> SetTypes:
    """List the set types of a project and of its organisation."""
    found = session.service.sets.types(session.place(request))
    return SetTypes(set_types=[SetTypeEntry.model_validate(each) for each in found])


@sets_router.post("/set_type/delete", status_code=204, responses=NOT_THERE, response_class=Response)
def delete_set_type(request: NamedSetType, session: ToWrite) -> None:
    """Remove a set type with its category templates; its sets stay."""
    session.service.sets.delete_type(session.place(request), request.set_type_id)


@sets_router.post("/set_id/get")
def get_set_id(request: GetSetId, session: ToWrite) -> SetId:
    """Return the id of the set for some metadata; the same metadata always has the same."""
    place = session.place(request)
    found = session.service.sets.name_of(
        place, request.metadata_tags, request.set_metadata, is_org_level=request.is_org_level
    )
    return SetId(set_id=found)


@sets_router.post("/set_id/list")
def list_sets(request: ListSets, session: ToRead) -> Sets:
    """List the sets of a project and of its organisation."""
    place = session.place(request)
    types = session.service.sets.types(place)
    found = session.service.sets.listed(place, request.set_metadata)
    return Sets(sets=[_entry(each, types) for each in found])


@sets_router.post("/set/configure", status_code=204, responses=NOT_THERE, response_class=Response)
def configure_set(request: ConfigureSet, session: ToWrite) -> None:
    """Say which models a set is to use."""
    models = {"embedder": request.embedder_name, "llm": request.llm_name}
    session.service.configure_set(session.place(request), request.set_id, **models)


def _entry(semantic_set: SemanticSet, types: list[SetType]) -> SetEntry:
    named = next((each for each in types if each.covers(semantic_set)), None)
    return SetEntry(
        id=semantic_set.id,
        is_org_level=semantic_set.is_org_level,
        tags=list(semantic_set.tags),
        name=named.name if named else None,
        description=named.description if named else None,
    )


# Categories, templates and tags.

categories_router = APIRouter(
    prefix="/api/v2/memories/semantic/category", tags=["Semantic categories"], responses=REFUSALS
)


@categories_router.post("", status_code=201, responses=ALREADY_THERE)
def add_category(request: AddCategory, session: ToWrite) -> CategoryId:
    """Add a category to a set."""
    added = session.service.categories.add(
        session.place(request),
        request.set_id,
        request.category_name,
        prompt=request.prompt,
        description=request.description,
    )
    return CategoryId(category_id=added)


@categories_router.post("/get", responses=NOT_THERE)
def get_category(request: NamedCategory, session: ToRead) -> CategoryEntry:
    """Read a category or template."""
    found = session.service.categories.get(session.place(request), request.category_id)
    return CategoryEntry.model_validate(found)


@categories_router.post("/delete", status_code=204, responses=NOT_THERE, response_class=Response)
def delete_category(request: NamedCategory, session: ToWrite) -> None:
    """Remove a category or template with its tags."""
    session.service.categories.delete(session.place(request), request.category_id)


@categories_router.post("/disable", status_code=204, responses=NOT_THERE, response_class=Response)
def disable_category(request: DisableCategory, session: ToWrite) -> None:
    """Switch a category off for one set, which may have it from its type."""
    place = session.place(request)
    session.service.categories.disable(place, request.set_id, request.category_name)


@categories_router.post("/set_ids/get", responses=NOT_THERE)
def get_set_ids(request: NamedCategory, session: ToRead) -> SetIds:
    """Name the sets that have a category."""
    found = session.service.categories.set_ids(session.place(request), request.category_id)
    return SetIds(set_ids=found)


@categories_router.post("/template", status_code=201, responses=NOT_THERE | ALREADY_THERE)
def add_template(request: AddTemplate, session: ToWrite) -> CategoryId:
    """Add a category that all sets of a type have."""
    added = session.service.categories.add_template(
        session.place(request),
        request.set_type_id,
        request.category_name,
        prompt=request.prompt,
        description=request.description,
    )
    return CategoryId(category_id=added)


@categories_router.post("/template/list", responses=NOT_THERE)
def list_templates(request: NamedSetType, session: ToRead) -> Templates:
    """List the templates of a set type."""
    found = session.service.categories.templates(session.place(request), request.set_type_id)
    origin = {"origin_type": "set_type", "origin_id": request.set_type_id}
    shown = [TemplateEntry(id=each.id, name=each.name, inherited=False, **origin) for each in found]
    return Templates(categories=shown)


@categories_router.post("/tag", status_code=201, responses=NOT_THERE | ALREADY_THERE)
def add_tag(request: AddTag, session: ToWrite) -> TagId:
    """Add a tag to a category."""
    named = (request.category_id, request.tag_name, request.tag_description)
    return TagId(tag_id=session.service.categories.add_tag(session.place(request), *named))


@categories_router.post(
    "/tag/delete", status_code=204, responses=NOT_THERE, response_class=Response
)
def delete_tag(request: NamedTag, session: ToWrite) -> None:
    """Remove a tag."""
    session.service.categories.delete_tag(session.place(request), request.tag_id)


# The learning of features from episodes.

extraction_router = APIRouter(
    prefix="/api/v2/memories/semantic/extraction", tags=["Semantic memory"], responses=REFUSALS
)


@extraction_router.post("")
def get_extraction(request: InProject, session: ToRead) -> ExtractionAnswer:
    """Tell from how many episodes of a project features are still to be learnt, and what failed."""
    place = session.place(request)
    state = session.service.extraction.state(place)
    shown = session.service.uids.shown(place, [each.episode for each in state.failures])
    failures = [
        ExtractionFailure(uid=uid, reason=each.reason, attempts=each.attempts)
        for uid, each in zip(shown, state.failures, strict=True)
    ]
    return ExtractionAnswer(**asdict(state) | {"failures": failures})


@extraction_router.post("/retry", responses=NOT_THERE)
def retry_extraction(request: InProject, session: ToWrite) -> TriedAgain:
    """Let the episodes that were given up be read anew."""
    return TriedAgain(waiting=session.service.extraction.try_again(session.existing(request)))
