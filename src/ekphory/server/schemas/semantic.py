"""Features, sets, set types, categories and tags on the wire."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ekphory.server.schemas.names import InProject, JsonMetadata, Metadata, Tags


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


class ExtractionAnswer(BaseModel):
    """How far the learning is."""

    enabled: bool = Field(description="Whether a language model is configured.")
    waiting: int = Field(description="Episodes that are still to be read.")
    failed: int = Field(description="Episodes that were given up.")
    unqueued: int = Field(
        description="Episodes that could not be queued since the server started, and are not read."
    )
    out_of_order: str | None = Field(description="Why nothing can be learnt at the moment.")
    failures: list[ExtractionFailure] = Field(description="The newest of those given up.")


class TriedAgain(BaseModel):
    """How many episodes are read anew."""

    waiting: int
