"""Semantic sets, their types and categories, and the episodes that are still to be learnt from."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from ekphory.catalog.database import Database, NotThere, Value

_CATEGORIES = (
    "SELECT CAST(id AS TEXT) AS id, org, project, set_id, "
    "CAST(set_type_id AS TEXT) AS set_type_id, name, prompt, description FROM categories"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """What is to be learnt about a set.

    Attributes:
        id: Its number, as text; empty before it is added.
        org, project: Whose it is; a project of None is the whole organisation's.
        set_id, set_type_id: The set it belongs to, or the type it is a template of; one is None.
        name: Unique within its set or type.
        prompt: How to learn it from messages.
        description: In its owner's words.
    """

    id: str = ""
    org: str
    project: str | None
    set_id: str | None = None
    set_type_id: str | None = None
    name: str
    prompt: str
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """One heading under which a category keeps features, and what belongs there."""

    name: str
    description: str


class Categories:
    """The tables of categories, of their tags, and of those that are switched off."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, category: Category) -> str:
        """Add a category or a template, and return its id.

        Raises:
            AlreadyThere: Its set or type has one of that name.
        """
        return str(self._database.insert("categories", {**asdict(category), "id": None}))

    def get(self, org: str, project: str, category_id: str) -> Category:
        """Return a category or template of a project or of its whole organisation.

        Raises:
            NotThere: There is none with that id.
        """
        found = self._where(
            "org = ? AND ifnull(project, ?2) = ?2 AND id = ?3",
            (org, project, _number(category_id)),
        )
        if not found:
            raise NotThere("Category not found")
        return found[0]

    def of_set(self, owner: SemanticSet) -> list[Category]:
        """Return a set's own categories."""
        return self._where("org = ? AND project IS ? AND set_id = ?", owner.key)

    def templates(self, set_type_id: str) -> list[Category]:
        """Return the templates of a set type."""
        return self._where("set_type_id = ?", (_number(set_type_id),))

    def delete(self, category: Category) -> None:
        """Remove a category or template with its tags."""
        self._database.write("DELETE FROM categories WHERE id = ?", (category.id,))

    def disable(self, owner: SemanticSet, name: str) -> None:
        """Switch a category off for one set, which may have it from its type."""
        self._database.write(
            "INSERT OR IGNORE INTO disabled_categories (org, project, set_id, name) "
            "VALUES (?, ?, ?, ?)",
            (*owner.key, name),
        )

    def disabled(self, owner: SemanticSet) -> set[str]:
        """Return the names of the categories that are switched off for a set."""
        rows = self._database.read(
            "SELECT name FROM disabled_categories WHERE org = ? AND project IS ? AND set_id = ?",
            owner.key,
        )
        return {row["name"] for row in rows}

    def add_tag(self, category: Category, tag: Tag) -> str:
        """Add a tag to a category, and return its id.

        Raises:
            AlreadyThere: It has one of that name.
        """
        return str(self._database.insert("tags", {"category_id": category.id, **asdict(tag)}))

    def tags(self, category: Category) -> list[Tag]:
        """Return the tags of a category, in the order in which they were added."""
        rows = self._database.read(
            "SELECT name, description FROM tags WHERE category_id = ? ORDER BY id",
            (category.id,),
        )
        return [Tag(**row) for row in rows]

    def category_of_tag(self, org: str, project: str, tag_id: str) -> Category:
        """Return the category that a tag belongs to, if it may be seen from this project.

        Raises:
            NotThere: There is no such tag.
        """
        found = self._where(
            "org = ? AND ifnull(project, ?2) = ?2 "
            "AND id = (SELECT category_id FROM tags WHERE id = ?3)",
            (org, project, _number(tag_id)),
        )
        if not found:
            raise NotThere("Tag not found")
        return found[0]

    def delete_tag(self, tag_id: str) -> None:
        """Remove a tag."""
        self._database.write("DELETE FROM tags WHERE id = ?", (tag_id,))

    def _where(self, condition: str, values: Sequence[Value]) -> list[Category]:
        statement = f"{_CATEGORIES} WHERE {condition} ORDER BY categories.id"
        return [Category(**row) for row in self._database.read(statement, values)]


def _number(text: str) -> int:
    """Return the number that an id is; 0, which no row has, where it is none."""
    is_number = text.isascii() and text.isdecimal() and len(text) < 19
    return int(text) if is_number else 0


# Semantic sets and their types.


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

    @property
    def is_org_level(self) -> bool:
        """Whether it is the whole organisation's."""
        return self.project is None

    @property
    def key(self) -> tuple[str, str | None, str]:
        """Organisation, project and id, by which the tables know it."""
        return self.org, self.project, self.id


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

    @property
    def is_org_level(self) -> bool:
        """Whether it is the whole organisation's."""
        return self.project is None

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
        """Add a set type, and return its id.

        Args:
            owner: The organisation, and the project or None for the whole organisation.
            tags: The metadata keys that tell its sets apart.
            name, description: In its owner's words.
        """
        row = {
            "org": owner[0],
            "project": owner[1],
            "tags": json.dumps(list(tags)),
            "name": name,
            "description": description,
        }
        return str(self._database.insert("set_types", row))

    def types(self, org: str, project: str) -> list[SetType]:
        """Return the types of a project and those of its whole organisation."""
        rows = self._database.read(
            "SELECT * FROM set_types WHERE org = ? AND ifnull(project, ?2) = ?2 ORDER BY id",
            (org, project),
        )
        return [
            SetType(**{**row, "id": str(row["id"]), "tags": tuple(json.loads(row["tags"]))})
            for row in rows
        ]

    def get_type(self, org: str, project: str, type_id: str) -> SetType:
        """Return one of `types`.

        Raises:
            NotThere: None of them has that id.
        """
        found = next((each for each in self.types(org, project) if each.id == type_id), None)
        if found is None:
            raise NotThere("Set type does not exist")
        return found

    def delete_type(self, type_id: str) -> None:
        """Remove a type with its category templates; the sets of that type stay."""
        self._database.write("DELETE FROM set_types WHERE id = ?", (type_id,))

    def register(self, semantic_set: SemanticSet) -> None:
        """Make a set known; what is known of it already stays as it is."""
        if self.find(*semantic_set.key) is None:
            row = {**asdict(semantic_set), "tags": json.dumps(dict(semantic_set.tags))}
            self._database.insert_new("semantic_sets", [row])

    def find(self, org: str, project: str | None, set_id: str) -> SemanticSet | None:
        """Return a set of exactly this owner, or None where there is none of that name."""
        rows = self._database.read(
            "SELECT * FROM semantic_sets WHERE org = ? AND project IS ? AND id = ?",
            (org, project, set_id),
        )
        return _read_set(rows[0]) if rows else None

    def sets(self, org: str, project: str) -> list[SemanticSet]:
        """Return the sets of a project and those of its whole organisation."""
        rows = self._database.read(
            "SELECT * FROM semantic_sets WHERE org = ? AND ifnull(project, ?2) = ?2 ORDER BY rowid",
            (org, project),
        )
        return list(map(_read_set, rows))

    def configure(
        self, semantic_set: SemanticSet, *, embedder: str | None, llm: str | None
    ) -> None:
        """Note which models a set's owner wants used; None leaves one as it is."""
        self._database.write(
            "UPDATE semantic_sets SET embedder = ifnull(?, embedder), llm = ifnull(?, llm) "
            "WHERE org = ? AND project IS ? AND id = ?",
            (embedder, llm, *semantic_set.key),
        )


def _read_set(row: sqlite3.Row) -> SemanticSet:
    return SemanticSet(**{**row, "tags": json.loads(row["tags"])})


# How large each group of features was when it was last put in order.


class FeatureGroup(NamedTuple):
    """The features of one user, in one set, under one tag of one category.

    Attributes:
        org, project: Whose set it is; a project of None is the whole organisation's.
        set_id, category, tag: Which features.
        user: Whom they are about; None for those that are about no user.
    """

    org: str
    project: str | None
    set_id: str
    category: str
    tag: str
    user: str | None


class Consolidations:
    """The table of sizes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def size(self, group: FeatureGroup) -> int:
        """Return how many features were left when the group was put in order; 0 for never."""
        rows = self._database.read(
            "SELECT features FROM consolidations WHERE org = ? AND project IS ? AND set_id = ? "
            "AND category = ? AND tag = ? AND user IS ?",
            group,
        )
        return rows[0]["features"] if rows else 0

    def note(self, group: FeatureGroup, size: int) -> None:
        """Note how many features are left in a group that was put in order."""
        self._database.write(
            "INSERT OR REPLACE INTO consolidations "
            "(org, project, set_id, category, tag, user, features) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*group, size),
        )


# The queue of episodes from which features are still to be learnt.


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionJob:
    """One episode from which features are to be learnt.

    Attributes:
        id: Its number; lower ones were added earlier.
        org, project: Whose episode it is.
        reach: How far changes may go, as `Place.reach` has it.
        episode: The episode's id.
        done: Which steps of it need not be done again.
        attempts: How often it has failed.
    """

    id: int
    org: str
    project: str
    reach: str
    episode: str
    done: frozenset[str] = frozenset()
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class FailedExtraction:
    """An episode from which nothing more will be learnt unless that is asked for anew."""

    episode: str
    reason: str
    attempts: int


class ExtractionQueue:
    """The table of jobs. What is in it outlives this process, also where it is killed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, owner: tuple[str, str], reach: str, episodes: Iterable[str]) -> None:
        """Add episodes of a project, in order; one that is in the queue already stays as it is."""
        org, project = owner
        self._database.insert_new(
            "extraction_jobs",
            [
                {"org": org, "project": project, "reach": reach, "episode": episode}
                for episode in episodes
            ],
        )

    def next(self, now: float) -> ExtractionJob | None:
        """Return the earliest job that is due at a moment (Unix seconds); None where there is none.

        While a job waits for its next attempt, later ones of the same project wait behind it:
        what was said later must be learnt later.
        """
        rows = self._database.read(
            "SELECT id, org, project, reach, episode, done, attempts "
            "FROM extraction_jobs AS job WHERE failure IS NULL AND due <= ?1 "
            "AND NOT EXISTS (SELECT 1 FROM extraction_jobs AS earlier WHERE failure IS NULL "
            "AND due > ?1 AND earlier.id < job.id "
            "AND earlier.org = job.org AND earlier.project = job.project) "
            "ORDER BY id LIMIT 1",
            (now,),
        )
        if not rows:
            return None
        return ExtractionJob(**{**rows[0], "done": frozenset(json.loads(rows[0]["done"]))})

    def holds(self, job: ExtractionJob) -> bool:
        """Whether a job is still wanted: its project may have been deleted meanwhile."""
        found = self._database.read("SELECT 1 FROM extraction_jobs WHERE id = ?", (job.id,))
        return bool(found)

    def note_done(self, job: ExtractionJob, step: str) -> None:
        """Note that a step of a job need not be done again."""
        self._database.write(
            "UPDATE extraction_jobs SET done = json_insert(done, '$[#]', ?) WHERE id = ?",
            (step, job.id),
        )

    def finish(self, job: ExtractionJob) -> None:
        """Take a job out, as all of it is done."""
        self._database.write("DELETE FROM extraction_jobs WHERE id = ?", (job.id,))

    def drop(self, owner: tuple[str, str]) -> None:
        """Take out all jobs of a project."""
        self._database.write("DELETE FROM extraction_jobs WHERE org = ? AND project = ?", owner)

    def put_off(self, job: ExtractionJob, *, due: float) -> None:
        """Count a failure, and let the job wait until a moment (Unix seconds)."""
        self._database.write(
            "UPDATE extraction_jobs SET attempts = attempts + 1, due = ? WHERE id = ?",
            (due, job.id),
        )

    def give_up(self, job: ExtractionJob, reason: str) -> None:
        """Count a failure, and keep the job with its reason, to be seen and asked for anew."""
        self._database.write(
            "UPDATE extraction_jobs SET attempts = attempts + 1, failure = ? WHERE id = ?",
            (reason, job.id),
        )

    def ask_again(self, owner: tuple[str, str]) -> int:
        """Let a project's failed jobs wait again; return how many."""
        return self._database.write(
            "UPDATE extraction_jobs SET failure = NULL, attempts = 0, due = 0 "
            "WHERE org = ? AND project = ? AND failure IS NOT NULL",
            owner,
        )

    def failed(self, owner: tuple[str, str], *, limit: int) -> list[FailedExtraction]:
        """Return a project's failed jobs, the newest first."""
        rows = self._database.read(
            "SELECT episode, failure AS reason, attempts FROM extraction_jobs "
            "WHERE org = ? AND project = ? AND failure IS NOT NULL ORDER BY id DESC LIMIT ?",
            (*owner, limit),
        )
        return [FailedExtraction(**row) for row in rows]

    def length(self, owner: tuple[str, str] | None = None) -> tuple[int, int]:
        """Return how many episodes of a project, or of all, wait, and how many were given up."""
        org, project = owner or (None, None)
        rows = self._database.read(
            "SELECT count(*) FILTER (WHERE failure IS NULL) AS waiting, "
            "count(*) FILTER (WHERE failure IS NOT NULL) AS failed FROM extraction_jobs "
            "WHERE ?1 IS NULL OR (org = ?1 AND project = ?2)",
            (org, project),
        )
        return rows[0]["waiting"], rows[0]["failed"]
