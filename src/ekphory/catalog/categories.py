"""Categories of semantic memory: of one set, or templates for all sets of a type; their tags."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from ekphory.catalog.database import Database
from ekphory.catalog.failures import AlreadyThere, NotThere


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
        """Give a category or template of a project or of its whole organisation.

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
        """Give a set's own categories."""
        rows = self._database.read(
            "SELECT * FROM categories WHERE org = ? AND project IS ? AND set_id = ? ORDER BY id",
            (org, project, set_id),
        )
        return [_category(row) for row in rows]

    def templates(self, set_type_id: str) -> list[Category]:
        """Give the templates of a set type."""
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
        """Give the names of the categories that are switched off for a set."""
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
        """Give the tags of a category, in the order in which they were added."""
        rows = self._database.read(
            "SELECT name, description FROM tags WHERE category_id = ? ORDER BY id",
            (int(category.id),),
        )
        return [Tag(name=row["name"], description=row["description"]) for row in rows]

    def category_of_tag(self, org: str, project: str, tag_id: str) -> Category:
        """Give the category that a tag belongs to, if it may be seen from this project.

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
    """Give the number that an id is; 0, which no row has, where it is none."""
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
