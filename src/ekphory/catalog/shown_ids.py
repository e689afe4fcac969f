"""Ids that memories are shown under to clients whose ids have a fixed form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ekphory.catalog.database import Database


class ShownIds:
    """The table of ids that were shown in place of others."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, org: str, project: str, shown: Mapping[str, str]) -> None:
        """Note which ids are shown, each with the id that it stands for."""
        # Most were shown before, and reading is much quicker than writing.
        new = shown.keys() - self._kept(org, project, shown)
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

    def _kept(self, org: str, project: str, shown: Iterable[str]) -> set[str]:
        rows = self._database.read(
            "SELECT shown FROM shown_ids WHERE org = ? AND project = ? "
            "AND shown IN (SELECT value FROM json_each(?))",
            (org, project, json.dumps(list(shown))),
        )
        return {row["shown"] for row in rows}
