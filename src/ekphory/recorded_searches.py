"""Searches that were made, kept in a file beside the store where its owner asks for that.

A record holds the question, the settings, the trace, and of each hit its id and scores: never the
text of a memory. The file is bounded, no backup holds it, and a purge removes each record that
shows a memory which no longer exists.
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ekphory.engine import Engine
from ekphory.errors import StoreError
from ekphory.filters.grammar import format_filter
from ekphory.filters.tree import EVERYTHING
from ekphory.retrieval.stages.rerank import GateReranker
from ekphory.scope import DEFAULT_NAME, Scope, get_owner
from ekphory.search import Question, SearchResult
from ekphory.types import StageTrace, Trace, now_utc

if TYPE_CHECKING:
    import sqlite3

Surface = Literal["python", "command line", "mcp", "server"]
"""Where a search came from."""
RECORDS_FILE = "searches.sqlite3"
_LONGEST_QUERY = 10_000
_BUSY_SECONDS = 5.0
_SEARCH_WAITS = 0.25
"""So many seconds a search waits for others that record; then it is not recorded."""
_IDS_A_READ = 1_000
_TABLE = """
CREATE TABLE IF NOT EXISTS searches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    surface TEXT NOT NULL,
    org TEXT,
    project TEXT,
    query TEXT NOT NULL,
    preset TEXT NOT NULL,
    hits INTEGER NOT NULL,
    milliseconds REAL NOT NULL,
    content TEXT NOT NULL
) STRICT
"""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSearch:
    """One search that was made.

    Attributes:
        id: Its number; later ones are larger.
        at: When, as ISO 8601 in UTC.
        surface: Where it came from.
        org, project: What the scope was bound to; None where it was not.
        query, preset: The question, and the pipeline that answered.
        hits: How many there were.
        milliseconds: Time that its stages took.
        content: Settings, trace, and the ids and scores of the hits.
    """

    id: int
    at: str
    surface: Surface
    org: str | None
    project: str | None
    query: str
    preset: str
    hits: int
    milliseconds: float
    content: Mapping[str, Any]

    @property
    def trace(self) -> Trace:
        """What its stages did."""
        told = self.content["trace"]
        return Trace(told["preset"], tuple(StageTrace(**stage) for stage in told["stages"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedIn:
    """Which records are looked at.

    Attributes:
        org, project: Whose they are.
        unbound: Whether those of scopes that name no organisation or project are among them; what
            is not named counts as `DEFAULT_NAME`.
        text: What the question contains; small and capital letters are the same.
        surface, preset: Only of this one; None for any.
    """

    org: str
    project: str
    unbound: bool = False
    text: str = ""
    surface: Surface | None = None
    preset: str | None = None

    def condition(self) -> tuple[str, tuple[str, ...]]:
        """Return it as SQL, and the values that this holds places for."""
        names = f"ifnull({{}}, '{DEFAULT_NAME}')" if self.unbound else "{}"
        parts = [f"{names.format(each)} = ?" for each in ("org", "project")]
        values = [self.org, self.project]
        if self.text.strip():
            parts.append("instr(casefold(query), ?) > 0")
            values.append(self.text.strip().casefold())
        for name in ("surface", "preset"):
            value = getattr(self, name)
            if value is not None:
                parts.append(f"{name} = ?")
                values.append(value)
        return " AND ".join(parts), tuple(values)


class RecordedSearches:
    """The records of one store; where it is on object storage, there are none."""

    def __init__(self, uri: str) -> None:
        self._path = None if "://" in uri else Path(uri) / RECORDS_FILE

    def keep(
        self, question: Question, result: SearchResult, *, scope: Scope, surface: Surface, most: int
    ) -> None:
        """Record a search, and drop the oldest of more than `most`; a failure is only logged."""
        if self._path is None:
            return
        row = {
            "at": now_utc().isoformat(),
            "surface": surface,
            "org": scope.org,
            "project": scope.project,
            # What UTF-8 cannot carry is searched all the same.
            "query": question.query[:_LONGEST_QUERY].encode("utf-8", "replace").decode(),
            "preset": result.trace.preset,
            "hits": len(result),
            "milliseconds": result.trace.milliseconds,
            "content": json.dumps(_content(question, result), default=str),
        }
        names, places = ", ".join(row), ", ".join("?" * len(row))
        try:
            with _open(self._path, seconds=_SEARCH_WAITS) as connection:
                connection.execute(
                    f"INSERT INTO searches ({names}) VALUES ({places})",  # noqa: S608  fixed names
                    tuple(row.values()),
                )
                connection.execute(
                    "DELETE FROM searches WHERE id <= "
                    "(SELECT id FROM searches ORDER BY id DESC LIMIT 1 OFFSET ?)",
                    (most,),
                )
        except StoreError as error:
            _log.warning("a search was not recorded", extra={"fields": {"why": str(error)}})

    def page(
        self, which: RecordedIn, *, limit: int, offset: int
    ) -> tuple[int, list[RecordedSearch]]:
        """Return how many records there are, and some of them, the newest first."""
        where, values = which.condition()
        total = self._read(f"SELECT count(*) FROM searches WHERE {where}", values)  # noqa: S608
        if not total or not total[0][0]:
            return 0, []
        rows = self._read(
            f"SELECT * FROM searches WHERE {where} ORDER BY id DESC LIMIT ? OFFSET ?",  # noqa: S608
            (*values, limit, offset),
        )
        return total[0][0], list(map(_read_row, rows))

    def find(self, which: RecordedIn, number: int) -> RecordedSearch | None:
        """Return one of these records by its number; None where it is none of them."""
        where, values = which.condition()
        rows = self._read(
            f"SELECT * FROM searches WHERE {where} AND id = ?",  # noqa: S608  fixed names
            (*values, number),
        )
        return _read_row(rows[0]) if rows else None

    def clear(self, which: RecordedIn) -> int:
        """Remove these records for good; return how many."""
        where, values = which.condition()
        return self._change(f"DELETE FROM searches WHERE {where}", [values])  # noqa: S608

    def gate_decisions(self, scope: Scope, preset: str) -> dict[str, int]:
        """Return how often the gate of a preset decided what, by the beginning of its reason.

        Counted are the records of the organisation and project that the scope names.
        """
        named = {"org": scope.org, "project": scope.project}
        asked = {"preset": preset, **{name: each for name, each in named.items() if each}}
        where = " AND ".join(f"{name} = ?" for name in asked)
        rows = self._read(
            f"SELECT * FROM searches WHERE {where}",  # noqa: S608  fixed names
            tuple(asked.values()),
        )
        reasons = [
            str(stage.detail["decision"])
            for record in map(_read_row, rows)
            for stage in record.trace.stages
            if stage.name == GateReranker.name and "decision" in stage.detail
        ]
        return dict(Counter(reason.partition(":")[0] for reason in reasons))

    def drop_gone(self, engine: Engine) -> None:
        """Remove each record that shows a memory which the store no longer holds.

        Raises:
            StoreError: The file cannot be changed.
        """
        shown = {
            row["id"]: {
                (hit["id"], tuple(hit["owner"])) for hit in json.loads(row["content"])["hits"]
            }
            for row in self._read("SELECT id, content FROM searches")
        }
        ids = sorted({memory_id for hits in shown.values() for memory_id, _ in hits})
        there: set[tuple[str, tuple[str | None, ...]]] = set()
        for first in range(0, len(ids), _IDS_A_READ):
            some = ids[first : first + _IDS_A_READ]
            there |= {(each.id, each.owner) for each in engine.store.present(EVERYTHING, some, ())}
        gone = [(number,) for number, hits in shown.items() if not hits <= there]
        self._change("DELETE FROM searches WHERE id = ?", gone)

    def _read(self, statement: str, values: Sequence[str | int] = ()) -> list[sqlite3.Row]:
        if self._path is None or not self._path.exists():
            return []
        with _open(self._path) as connection:
            return connection.execute(statement, values).fetchall()

    def _change(self, statement: str, rows: Sequence[tuple[str | int, ...]]) -> int:
        if self._path is None or not self._path.exists() or not rows:
            return 0
        with _open(self._path) as connection:
            return connection.executemany(statement, rows).rowcount


@contextmanager
def _open(path: Path, *, seconds: float = _BUSY_SECONDS) -> Iterator[sqlite3.Connection]:
    """Open the file for one transaction; opened anew each time, no fork can inherit it.

    Raises:
        StoreError: The file cannot be used.
    """
    # Takes milliseconds to import, and most programs record nothing.
    import sqlite3

    try:
        # Made with these rights from the start, since it holds what was asked.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        with closing(sqlite3.connect(path, timeout=seconds)) as connection:
            connection.row_factory = sqlite3.Row
            # SQLite's own `lower` knows the letters of ASCII alone.
            connection.create_function("casefold", 1, str.casefold, deterministic=True)
            # What is deleted is overwritten; a power loss may take the newest records.
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(_TABLE)
            with connection:
                yield connection
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"{path}: the recorded searches cannot be used ({error}). "
            "Check the file's rights, or remove it."
        ) from error


def _content(question: Question, result: SearchResult) -> dict[str, Any]:
    named = {name: getattr(question, name) for name in ("k", "min_score", "time", "superseded")}
    return named | {
        "now": question.now.isoformat(),
        "pools": None if question.pools is None else list(question.pools),
        "filter": "" if question.filter == EVERYTHING else format_filter(question.filter),
        "agent_mode": result.retrieval_trace is not None,
        "abstained": result.abstained,
        "order": result.order,
        "trace": result.trace.to_dict(),
        "hits": [
            {
                "id": hit.id,
                "owner": get_owner(hit.memory),
                "score": hit.score,
                "scores": {name: each for name, each in hit.scores.items() if math.isfinite(each)},
            }
            for hit in result
        ],
    }


def _read_row(row: sqlite3.Row) -> RecordedSearch:
    named = {entry.name: row[entry.name] for entry in fields(RecordedSearch)}
    return RecordedSearch(**named | {"content": json.loads(row["content"])})
