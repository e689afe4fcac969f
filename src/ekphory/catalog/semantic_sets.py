"""Semantic sets and their types: which groups of features there are, and by what they are told."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ekphory.catalog.database import Database
from ekphory.catalog.failures import NotThere


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticSet:
    """One group of features.

    Attributes:
        id: Its name, which follows from its tags unless a caller chose it.
        project: Whose it is; None for the whole organisation's.
        tags: The metadata that its features are about, such as `{"user_id": "mara"}`.
        embedder, llm: Models that its owner wants used for it; kept, and not acted on.
    """

    id: str
    org: str
    project: str | None
    tags: Mapping[str, str] = field(default_factory=dict)
    embedder: str | None = None
    llm: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetType:
    """A way of grouping features: one set for each combination of values of its tags.

    Attributes:
        id: Its number, as text.
        project: Whose it is; None for the whole organisation's.
        tags: The metadata keys that tell its sets apart.
        name, description: In its owner's words.
    """

    id: str
    org: str
    project: str | None
    tags: tuple[str, ...]
    name: str | None = None
    description: str | None = None

    def covers(self, semantic_set: SemanticSet) -> bool:
        """Whether a set is one of this type's: of the same owner, told apart by the same keys."""
        same_owner = (self.org, self.project) == (semantic_set.org, semantic_set.project)
        return same_owner and set(self.tags) == set(semantic_set.tags)


class SemanticSets:
    """The tables of sets and of their types."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_type(
        self,
        owner: tuple[str, str | None],
        tags: Sequence[str],
        *,
        name: str | None = None,
        description: str | None = None,
    ) -> str:
        """Add a set type, and give its id.

        Args:
            owner: The organisation, and the project or None for the whole organisation.
            tags: The metadata keys that tell its sets apart.
            name, description: In its owner's words.
        """
        with self._database.transaction() as connection:
            inserted = connection.execute(
                "INSERT INTO set_types (org, project, tags, name, description) "
                "VALUES (?, ?, ?, ?, ?)",
                (*owner, json.dumps(list(tags)), name, description),
            )
            return str(inserted.lastrowid)

    def types(self, org: str, project: str) -> list[SetType]:
        """Give the types of a project and those of its whole organisation."""
        rows = self._database.read(
            "SELECT * FROM set_types WHERE org = ? AND ifnull(project, ?2) = ?2 ORDER BY id",
            (org, project),
        )
        return [_set_type(row) for row in rows]

    def get_type(self, org: str, project: str, type_id: str) -> SetType:
        """Give one of `types`.

        Raises:
            NotThere: None of them has that id.
        """
        found = next((each for each in self.types(org, project) if each.id == type_id), None)
        if found is None:
            raise NotThere("Set type does not exist")
        return found

    def delete_type(self, type_id: str) -> None:
        """Remove a type with its category templates; the sets of that type stay."""
        self._database.write("DELETE FROM set_types WHERE id = ?", (int(type_id),))

    def register(self, semantic_set: SemanticSet) -> None:
        """Make a set known; what is known of it already stays as it is."""
        if self.find(semantic_set.org, semantic_set.project, semantic_set.id) is None:
            self._database.write(
                "INSERT OR IGNORE INTO semantic_sets (id, org, project, tags) VALUES (?, ?, ?, ?)",
                (
                    semantic_set.id,
                    semantic_set.org,
                    semantic_set.project,
                    json.dumps(dict(semantic_set.tags)),
                ),
            )

    def find(self, org: str, project: str | None, set_id: str) -> SemanticSet | None:
        """Give a set of exactly this owner, or None where there is none of that name."""
        rows = self._database.read(
            "SELECT * FROM semantic_sets WHERE org = ? AND project IS ? AND id = ?",
            (org, project, set_id),
        )
        return _semantic_set(rows[0]) if rows else None

    def sets(self, org: str, project: str) -> list[SemanticSet]:
        """Give the sets of a project and those of its whole organisation."""
        rows = self._database.read(
            "SELECT * FROM semantic_sets WHERE org = ? AND ifnull(project, ?2) = ?2 ORDER BY rowid",
            (org, project),
        )
        return [_semantic_set(row) for row in rows]

    def configure(
        self, semantic_set: SemanticSet, *, embedder: str | None, llm: str | None
    ) -> None:
        """Note which models a set's owner wants used; None leaves one as it is."""
        self._database.write(
            "UPDATE semantic_sets SET embedder = ifnull(?, embedder), llm = ifnull(?, llm) "
            "WHERE org = ? AND project IS ? AND id = ?",
            (embedder, llm, semantic_set.org, semantic_set.project, semantic_set.id),
        )


def _set_type(row: sqlite3.Row) -> SetType:
    return SetType(
        id=str(row["id"]),
        org=row["org"],
        project=row["project"],
        tags=tuple(json.loads(row["tags"])),
        name=row["name"],
        description=row["description"],
    )


def _semantic_set(row: sqlite3.Row) -> SemanticSet:
    return SemanticSet(
        id=row["id"],
        org=row["org"],
        project=row["project"],
        tags=json.loads(row["tags"]),
        embedder=row["embedder"],
        llm=row["llm"],
    )
