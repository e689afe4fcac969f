"""What searches did, kept for a while."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ekphory.catalog.database import Database
from ekphory.catalog.failures import NotThere
from ekphory.moments import now_utc

KEPT = 10_000
"""So many traces are kept, the newest."""
_PRUNE_EVERY = 100


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """One trace; no text of a memory is in it."""

    id: str
    org: str
    project: str
    created_at: str
    content: Mapping[str, Any]


def new_trace_id() -> str:
    """Make a name for a trace, which nobody can guess."""
    return secrets.token_hex(16)


class Traces:
    """The table of traces."""

    def __init__(self, database: Database, *, kept: int = KEPT) -> None:
        self._database = database
        self._kept = kept

    def keep(self, trace_id: str, org: str, project: str, content: Mapping[str, Any]) -> None:
        """Store a trace, and drop old ones now and then."""
        with self._database.transaction() as connection:
            place = connection.execute(
                "INSERT INTO traces (id, org, project, created_at, content) VALUES (?, ?, ?, ?, ?)",
                (trace_id, org, project, now_utc().isoformat(), json.dumps(dict(content))),
            ).lastrowid
            if place is not None and place % _PRUNE_EVERY == 0:
                connection.execute("DELETE FROM traces WHERE place <= ?", (place - self._kept,))

    def get(self, trace_id: str) -> StoredTrace:
        """Give a trace.

        Raises:
            NotThere: There is none with that id, or it was dropped.
        """
        rows = self._database.read("SELECT * FROM traces WHERE id = ?", (trace_id,))
        if not rows:
            raise NotThere("Trace does not exist")
        row = rows[0]
        return StoredTrace(
            row["id"], row["org"], row["project"], row["created_at"], json.loads(row["content"])
        )
