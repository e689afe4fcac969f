"""Projects of organisations, and the traces of their searches."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ekphory.catalog.database import Database, NotThere, Value
from ekphory.types import now_utc


@dataclass(frozen=True, slots=True)
class EpisodicSwitches:
    """Which parts of episodic memory a project's searches look into.

    Attributes:
        enabled: Whether episodic memory is searched at all.
        long_term: Whether what answers the query is found.
        short_term: Whether the newest messages come with every search.
    """

    enabled: bool = True
    long_term: bool = True
    short_term: bool = True


_PARTS = tuple(each.name for each in fields(EpisodicSwitches))


@dataclass(frozen=True, slots=True)
class Project:
    """One project.

    Attributes:
        org, project: Its name.
        description: In its owner's words.
        config: What its creator asked for, as plain data.
        switches: Which parts of episodic memory are searched.
    """

    org: str
    project: str
    description: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    switches: EpisodicSwitches = EpisodicSwitches()


class Projects:
    """The table of projects."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, project: Project) -> None:
        """Add a project.

        Raises:
            AlreadyThere: There is one of that name.
        """
        self._database.insert("projects", _row(project))

    def ensure(self, org: str, project: str, config: Mapping[str, Any] | None = None) -> None:
        """Add an empty project, unless there is one of that name."""
        if self.find(org, project) is None:
            made = Project(org=org, project=project, config=config or {})
            self._database.insert_new("projects", [_row(made)])

    def find(self, org: str, project: str) -> Project | None:
        """Return a project, or None where there is none of that name."""
        rows = self._database.read(
            "SELECT * FROM projects WHERE org = ? AND project = ?", (org, project)
        )
        return _read_project(rows[0]) if rows else None

    def get(self, org: str, project: str) -> Project:
        """Return a project.

        Raises:
            NotThere: There is none of that name.
        """
        found = self.find(org, project)
        if found is None:
            raise NotThere(
                f"There is no project {project!r} of organisation {org!r}. "
                "Choose one that the inspector, or POST /api/v2/projects/list, lists."
            )
        return found

    def all(self) -> list[Project]:
        """Return all projects, by name."""
        rows = self._database.read("SELECT * FROM projects ORDER BY org, project")
        return list(map(_read_project, rows))

    def switch(self, org: str, project: str, changes: Mapping[str, bool | None]) -> None:
        """Change some switches; None leaves one as it is.

        Args:
            org, project: The project's name.
            changes: By the names in `EpisodicSwitches`.

        Raises:
            NotThere: There is no such project.
        """
        changed = self._database.write(
            "UPDATE projects SET enabled = ifnull(?, enabled), "
            "long_term = ifnull(?, long_term), short_term = ifnull(?, short_term) "
            "WHERE org = ? AND project = ?",
            (*map(changes.get, _PARTS), org, project),
        )
        if not changed:
            raise NotThere("Project not found")

    def delete(self, org: str, project: str) -> None:
        """Remove a project with its sets, types, categories and traces; not its memories."""
        with self._database.transaction() as connection:
            for table in (
                *("projects", "traces", "shown_ids", "set_types"),
                *("semantic_sets", "categories", "disabled_categories"),
                *("extraction_jobs", "consolidations"),
            ):
                connection.execute(
                    f"DELETE FROM {table} WHERE org = ? AND project = ?",  # noqa: S608  fixed names
                    (org, project),
                )


def _row(project: Project) -> dict[str, Value]:
    return {
        "org": project.org,
        "project": project.project,
        "description": project.description,
        "config": json.dumps(dict(project.config)),
        "created_at": now_utc().isoformat(),
    }


def _read_project(row: sqlite3.Row) -> Project:
    told = {name: row[name] for name in ("org", "project", "description")}
    switches = EpisodicSwitches(*(bool(row[name]) for name in _PARTS))
    return Project(**told, config=json.loads(row["config"]), switches=switches)


# Traces.

KEPT = 10_000
"""So many traces are kept, the newest."""
_PRUNE_EVERY = 100


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """One trace; no text of a memory is in it."""

    org: str
    project: str
    created_at: str
    content: Mapping[str, Any]


class Traces:
    """The table of traces."""

    def __init__(self, database: Database, *, kept: int = KEPT) -> None:
        self._database = database
        self._kept = kept

    def keep(self, trace_id: str, org: str, project: str, content: Mapping[str, Any]) -> None:
        """Store a trace, and drop old ones now and then."""
        trace = {
            "id": trace_id,
            "org": org,
            "project": project,
            "created_at": now_utc().isoformat(),
            "content": json.dumps(dict(content)),
        }
        place = self._database.insert("traces", trace)
        if place % _PRUNE_EVERY == 0:
            self._database.write("DELETE FROM traces WHERE place <= ?", (place - self._kept,))

    def get(self, trace_id: str) -> StoredTrace:
        """Return a trace.

        Raises:
            NotThere: There is none with that id, or it was dropped.
        """
        rows = self._database.read(
            "SELECT org, project, created_at, content FROM traces WHERE id = ?", (trace_id,)
        )
        if not rows:
            raise NotThere("Trace does not exist")
        return StoredTrace(**{**rows[0], "content": json.loads(rows[0]["content"])})
