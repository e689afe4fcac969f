"""How large each group of features was when it was last put in order."""

from __future__ import annotations

from dataclasses import dataclass

from ekphory.catalog.database import Database


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
        """Give how many features were left when the group was put in order; 0 for never."""
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
