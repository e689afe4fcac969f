"""Projects on the wire."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field

from ekphory.server.wire.names import Name, has_few_entries

PropertyType = Literal["bool", "int", "float", "str", "datetime"]


class ProjectConfig(BaseModel):
    """What a project uses; empty for what the server has."""

    backend: Literal["declarative", "event"] | None = None
    reranker: str = ""
    embedder: str = ""
    vector_graph_store: str = ""
    vector_store: str = ""
    segment_store: str = ""
    properties_schema: Annotated[dict[str, PropertyType], BeforeValidator(has_few_entries)] = Field(
        default_factory=dict
    )


class ProjectName(BaseModel):
    """Names a project."""

    org_id: Annotated[Name, Field(description="The organisation.", examples=["home"])]
    project_id: Annotated[Name, Field(description="The project.", examples=["chat"])]


class CreateProject(ProjectName):
    """A project to be made."""

    description: str = ""
    config: ProjectConfig = Field(default_factory=ProjectConfig)


class ProjectAnswer(ProjectName):
    """A project as it is kept."""

    description: str
    config: ProjectConfig


class EpisodeCount(BaseModel):
    """How many episodes a project holds."""

    count: int
