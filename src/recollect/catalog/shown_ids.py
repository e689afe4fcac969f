"""Ids that memories are shown under to clients whose ids have a fixed form."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.catalog.database import Database


class ShownIds:
    """The table of ids that were shown in place of others."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, org: str, project: str, shown: Mapping[str, str]) -> None:
        """Note which ids are shown, each with the id that it stands for."""
        # Most were shown before, and reading is much quicker than writing.
        new = [name for name in shown if self.find(org, project, name) is None]
        if not new:
            return
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO shown_ids (org, project, shown, id) VALUES (?, ?, ?, ?)",
                [(org, project, name, shown[name]) for name in new],
            )

    def find(self, org: str, project: str, shown: str) -> str | None:
        """Give the id that one stands for; None where it was never shown."""
        rows = self._database.read(
            "SELECT id FROM shown_ids WHERE org = ? AND project = ? AND shown = ?",
            (org, project, shown),
        )
        return rows[0]["id"] if rows else None
