"""Projects."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ekphory.catalog.projects import Project
from ekphory.server.routes.context import (
    ALREADY_THERE,
    NOT_THERE,
    REFUSALS,
    TheAdmin,
    TheReader,
    TheService,
    TheWriter,
)
from ekphory.server.wire.projects import (
    CreateProject,
    EpisodeCount,
    ProjectAnswer,
    ProjectConfig,
    ProjectName,
)

router = APIRouter(prefix="/api/v2/projects", tags=["Projects"], responses=REFUSALS)


@router.post("", status_code=201, responses=ALREADY_THERE)
def create_project(request: CreateProject, service: TheService, caller: TheWriter) -> ProjectAnswer:
    """Make a project. Adding memories makes one too, where there is none of that name."""
    place = caller.place(request.org_id, request.project_id, "write")
    project = Project(
        org=place.org,
        project=place.project,
        description=request.description,
        config=request.config.model_dump(),
    )
    return _answer(service.create_project(project))


@router.post("/get", responses=NOT_THERE)
def get_project(request: ProjectName, service: TheService, caller: TheReader) -> ProjectAnswer:
    """Read a project."""
    place = caller.place(request.org_id, request.project_id, "read")
    return _answer(service.projects.get(*place.owner))


@router.post("/list")
def list_projects(service: TheService, caller: TheReader) -> list[dict[str, str]]:
    """List the projects that the key reaches."""
    return [
        {"org_id": each.org, "project_id": each.project}
        for each in service.projects.all()
        if caller.may_see(each.org, each.project)
    ]


@router.post("/delete", status_code=204, responses=NOT_THERE, response_class=Response)
def delete_project(request: ProjectName, service: TheService, caller: TheAdmin) -> None:
    """Forget a project with all of its memories, features, sets and traces."""
    service.delete_project(caller.place(request.org_id, request.project_id, "admin"))


@router.post("/episode_count/get")
def get_episode_count(request: ProjectName, service: TheService, caller: TheReader) -> EpisodeCount:
    """Count the episodes of a project."""
    place = caller.place(request.org_id, request.project_id, "read")
    return EpisodeCount(count=service.episodes.count(place))


def _answer(project: Project) -> ProjectAnswer:
    return ProjectAnswer(
        org_id=project.org,
        project_id=project.project,
        description=project.description,
        config=ProjectConfig(**project.config),
    )
