"""Semantic sets, their types and categories, and the episodes that are still to be learnt from."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ekphory.catalog.database import AlreadyThere, Database, NotThere

# Categories of semantic memory: of one set, or templates for all sets of a type; their tags.


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
        """Add a category or a template, and give its id.

        Raises:
            AlreadyThere: Its set or type has one of that name.
        """
        values = (
            category.org,
            category.project,
            category.set_id,
            None if category.set_type_id is None else int(category.set_type_id),
            category.name,
            category.prompt,
            category.description,
        )
        try:
            with self._database.transaction() as connection:
                inserted = connection.execute(
                    "INSERT INTO categories "
                    "(org, project, set_id, set_type_id, name, prompt, description) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?)",
                    values,
                )
                return str(inserted.lastrowid)
        except sqlite3.IntegrityError as error:
            raise AlreadyThere("Category already exists") from error

    def get(self, org: str, project: str, category_id: str) -> Category:
        """Return a category or template of a project or of its whole organisation.

        Raises:
            NotThere: There is none with that id.
        """
        rows = self._database.read(
            "SELECT * FROM categories WHERE org = ? AND ifnull(project, ?2) = ?2 AND id = ?3",
            (org, project, _number(category_id)),
        )
        if not rows:
            raise NotThere("Category not found")
        return _category(rows[0])

    def of_set(self, org: str, project: str | None, set_id: str) -> list[Category]:
        """Return a set's own categories."""
        rows = self._database.read(
            "SELECT * FROM categories WHERE org = ? AND project IS ? AND set_id = ? ORDER BY id",
            (org, project, set_id),
        )
        return [_category(row) for row in rows]

    def templates(self, set_type_id: str) -> list[Category]:
        """Return the templates of a set type."""
        rows = self._database.read(
            "SELECT * FROM categories WHERE set_type_id = ? ORDER BY id", (_number(set_type_id),)
        )
        return [_category(row) for row in rows]

    def delete(self, category: Category) -> None:
        """Remove a category or template with its tags."""
        self._database.write("DELETE FROM categories WHERE id = ?", (int(category.id),))

    def disable(self, owner: tuple[str, str | None], set_id: str, name: str) -> None:
        """Switch a category off for one set, which may have it from its type."""
        self._database.write(
            "INSERT OR IGNORE INTO disabled_categories (org, project, set_id, name) "
            "VALUES (?, ?, ?, ?)",
            (*owner, set_id, name),
        )

    def disabled(self, owner: tuple[str, str | None], set_id: str) -> set[str]:
        """Return the names of the categories that are switched off for a set."""
        rows = self._database.read(
            "SELECT name FROM disabled_categories WHERE org = ? AND project IS ? AND set_id = ?",
            (*owner, set_id),
        )
        return {row["name"] for row in rows}

    def add_tag(self, category: Category, name: str, description: str) -> str:
        """Add a tag to a category, and give its id.

        Raises:
            AlreadyThere: It has one of that name.
        """
        try:
            with self._database.transaction() as connection:
                inserted = connection.execute(
                    "INSERT INTO tags (category_id, name, description) VALUES (?, ?, ?)",
                    (int(category.id), name, description),
                )
                return str(inserted.lastrowid)
        except sqlite3.IntegrityError as error:
            raise AlreadyThere("Tag already exists") from error

    def tags(self, category: Category) -> list[Tag]:
        """Return the tags of a category, in the order in which they were added."""
        rows = self._database.read(
            "SELECT name, description FROM tags WHERE category_id = ? ORDER BY id",
            (int(category.id),),
        )
        return [Tag(name=row["name"], description=row["description"]) for row in rows]

    def category_of_tag(self, org: str, project: str, tag_id: str) -> Category:
        """Return the category that a tag belongs to, if it may be seen from this project.

        Raises:
            NotThere: There is no such tag.
        """
        rows = self._database.read("SELECT category_id FROM tags WHERE id = ?", (_number(tag_id),))
        if not rows:
            raise NotThere("Tag not found")
        try:
            return self.get(org, project, str(rows[0]["category_id"]))
        except NotThere as error:
            raise NotThere("Tag not found") from error

    def delete_tag(self, tag_id: str) -> None:
        """Remove a tag."""
        self._database.write("DELETE FROM tags WHERE id = ?", (int(tag_id),))


def _number(text: str) -> int:
    """Return the number that an id is; 0, which no row has, where it is none."""
    is_number = text.isascii() and text.isdecimal() and len(text) < 19
    return int(text) if is_number else 0


def _category(row: sqlite3.Row) -> Category:
    return Category(
        id=str(row["id"]),
        org=row["org"],
        project=row["project"],
        set_id=row["set_id"],
        set_type_id=None if row["set_type_id"] is None else str(row["set_type_id"]),
        name=row["name"],
        prompt=row["prompt"],
        description=row["description"],
    )


# Semantic sets and their types: which groups of features there are, and by what they are told.


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
        """Return the types of a project and those of its whole organisation."""
        rows = self._database.read(
            "SELECT * FROM set_types WHERE org = ? AND ifnull(project, ?2) = ?2 ORDER BY id",
            (org, project),
        )
        return [_set_type(row) for row in rows]

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
        """Return a set of exactly this owner, or None where there is none of that name."""
        rows = self._database.read(
            "SELECT * FROM semantic_sets WHERE org = ? AND project IS ? AND id = ?",
            (org, project, set_id),
        )
        return _semantic_set(rows[0]) if rows else None

    def sets(self, org: str, project: str) -> list[SemanticSet]:
        """Return the sets of a project and those of its whole organisation."""
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


# How large each group of features was when it was last put in order.


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureGroup:
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
            _key(group),
        )
        return rows[0]["features"] if rows else 0

    def note(self, group: FeatureGroup, size: int) -> None:
        """Note how many features are left in a group that was put in order."""
        with self._database.transaction() as connection:
            changed = connection.execute(
                "UPDATE consolidations SET features = ? WHERE org = ? AND project IS ? "
                "AND set_id = ? AND category = ? AND tag = ? AND user IS ?",
                (size, *_key(group)),
            ).rowcount
            if not changed:
                connection.execute(
                    "INSERT INTO consolidations (org, project, set_id, category, tag, user, "
                    "features) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (*_key(group), size),
                )


def _key(group: FeatureGroup) -> tuple[str | None, ...]:
    return group.org, group.project, group.set_id, group.category, group.tag, group.user


# The queue of episodes from which features are still to be learnt, and those where it failed.


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


@dataclass(frozen=True, slots=True)
class QueueLength:
    """How many episodes wait, and for how many it was given up."""

    waiting: int
    failed: int


class ExtractionQueue:
    """The table of jobs. What is in it outlives this process, also where it is killed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, owner: tuple[str, str], reach: str, episodes: Iterable[str]) -> None:
        """Add episodes of a project, in order; one that is in the queue already stays as it is."""
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO extraction_jobs (org, project, reach, episode) "
                "VALUES (?, ?, ?, ?)",
                [(*owner, reach, episode) for episode in episodes],
            )

    def next(self, now: float) -> ExtractionJob | None:
        """Return the earliest job that is due at a moment (Unix seconds); None where there is none.

        While a job waits for its next attempt, later ones of the same project wait behind it:
        what was said later must be learnt later.
        """
        rows = self._database.read(
            "SELECT * FROM extraction_jobs AS job WHERE failure IS NULL AND due <= ?1 "
            "AND NOT EXISTS (SELECT 1 FROM extraction_jobs AS earlier WHERE failure IS NULL "
            "AND due > ?1 AND earlier.id < job.id "
            "AND earlier.org = job.org AND earlier.project = job.project) "
            "ORDER BY id LIMIT 1",
            (now,),
        )
        return _job(rows[0]) if rows else None

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
        """Let a project's failed jobs wait again; gives how many."""
        return self._database.write(
            "UPDATE extraction_jobs SET failure = NULL, attempts = 0, due = 0 "
            "WHERE org = ? AND project = ? AND failure IS NOT NULL",
            owner,
        )

    def failed(self, owner: tuple[str, str], *, limit: int) -> list[FailedExtraction]:
        """Return a project's failed jobs, the newest first."""
        rows = self._database.read(
            "SELECT * FROM extraction_jobs WHERE org = ? AND project = ? AND failure IS NOT NULL "
            "ORDER BY id DESC LIMIT ?",
            (*owner, limit),
        )
        return [FailedExtraction(row["episode"], row["failure"], row["attempts"]) for row in rows]

    def length(self, owner: tuple[str, str] | None = None) -> QueueLength:
        """How many jobs there are: of a project, or of all."""
        org, project = owner or (None, None)
        rows = self._database.read(
            "SELECT count(*) FILTER (WHERE failure IS NULL) AS waiting, "
            "count(*) FILTER (WHERE failure IS NOT NULL) AS failed FROM extraction_jobs "
            "WHERE ?1 IS NULL OR (org = ?1 AND project = ?2)",
            (org, project),
        )
        return QueueLength(rows[0]["waiting"], rows[0]["failed"])


def _job(row: sqlite3.Row) -> ExtractionJob:
    names = ("id", "org", "project", "reach", "episode", "attempts")
    return ExtractionJob(
        done=frozenset(json.loads(row["done"])), **{name: row[name] for name in names}
    )
