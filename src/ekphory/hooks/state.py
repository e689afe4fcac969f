"""What hooks have done: what is captured, what was recalled, what waits, and what failed last.

It is a file beside the store. It holds places and counts, ids of memories, and no text: what waits
is named by the transcript that it is in, or has its secrets cut out already.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import filelock

from ekphory.errors import StoreError
from ekphory.scope import DEFAULT_NAME

STATE_FILE = "hooks.sqlite3"
_BUSY_SECONDS = 5.0
_HOLD_SECONDS = 90.0
_KEPT_EVENTS = 1_000
_TABLES = files(__package__).joinpath("state.sql").read_text("utf-8")
PLACE = "#"
"""How the name of a message begins that no moment is told of: by its place."""


def _names_in(column: str) -> str:
    return f"SELECT {column} FROM sessions WHERE host = ? AND session = ?"  # noqa: S608


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is still to be captured.

    Attributes:
        id: Its number.
        host, session, org, project, folder: Whose it is, and where the session runs.
        transcript: The file that the messages are in; None where they were sent.
        messages: Those that were sent, without their secrets.
    """

    id: int
    host: str
    session: str
    org: str | None
    project: str
    folder: str
    transcript: str | None
    messages: list[dict[str, Any]] | None


@dataclass(frozen=True, slots=True)
class HookEvent:
    """What a hook did.

    Attributes:
        at: When, ISO 8601 in UTC.
        host, event, project: Which hook it was, and for what.
        milliseconds: How long it took.
        did: In words.
        failure: What went wrong; None where nothing did.
    """

    at: str
    host: str
    event: str
    project: str
    milliseconds: float
    did: str
    failure: str | None = None


class HookState:
    """The state of one store's hooks. Safe for several processes.

    Attributes:
        lock: What a process holds that captures what waits.
    """

    def __init__(self, folder: Path) -> None:
        """Take the folder that the file lies in, which is made if needed."""
        self._path = folder / STATE_FILE
        self.lock = self._path.with_suffix(".lock")

    def recalled(self, host: str, session: str) -> set[str]:
        """Return ids of the memories that a session was shown."""
        return self._read_names("recalled", host, session)

    def note_recalled(self, host: str, session: str, ids: Sequence[str]) -> None:
        """Add ids to those that a session was shown."""
        self._add_names("recalled", host, session, ids)

    def captured(self, host: str, session: str) -> set[str]:
        """Return what names the messages of a session that are captured."""
        return self._read_names("captured", host, session)

    def captured_elsewhere(self, host: str, names: Sequence[str]) -> set[str]:
        """Return what names the captured messages of the sessions that have all of some names."""
        conditions = " AND instr(captured, ?)" * len(names)
        rows = self._read(
            f"SELECT captured FROM sessions WHERE host = ?{conditions}",  # noqa: S608
            (host, *map(json.dumps, names)),
        )
        return {each for row in rows for each in json.loads(row[0])}

    def note_captured(self, host: str, session: str, names: Iterable[str]) -> None:
        """Add messages to those of a session that are captured.

        A place names what stands there now; what has a moment stays known, whatever a compaction
        or a step back takes out.
        """
        self._add_names("captured", host, session, names, replaced=PLACE)

    def captured_by_hand(self, org: str | None, project: str, session: str) -> set[str]:
        """Return what names the messages of a session that somebody captured into a project."""
        query = "SELECT captured FROM by_hand WHERE org = ? AND project = ? AND session = ?"
        return self._read_set(query, org or DEFAULT_NAME, project, session)

    def note_captured_by_hand(
        self, org: str | None, project: str, session: str, names: Iterable[str]
    ) -> None:
        """Add messages to those that somebody captured; no hook captures them again."""
        known = self.captured_by_hand(org, project, session) | set(names)
        self._write(
            "INSERT OR REPLACE INTO by_hand (org, project, session, captured) VALUES (?, ?, ?, ?)",
            (org or DEFAULT_NAME, project, session, json.dumps(sorted(known))),
        )

    def _read_names(self, column: str, host: str, session: str) -> set[str]:
        return self._read_set(_names_in(column), host, session)

    def _read_set(self, query: str, *values: str) -> set[str]:
        rows = self._read(query, values)
        return set(json.loads(rows[0][0])) if rows else set()

    def _add_names(
        self, column: str, host: str, session: str, names: Iterable[str], *, replaced: str = ""
    ) -> None:
        """Add names, in the place of those that begin with `replaced`."""
        with self._open() as connection:
            # Another process may add some too.
            connection.execute("BEGIN IMMEDIATE")
            rows = connection.execute(_names_in(column), (host, session)).fetchall()
            known = json.loads(rows[0][0]) if rows else []
            kept = {each for each in known if not (replaced and each.startswith(replaced))}
            connection.execute(
                f"INSERT INTO sessions (host, session, {column}) VALUES (?, ?, ?) "  # noqa: S608
                f"ON CONFLICT DO UPDATE SET {column} = excluded.{column}",
                (host, session, json.dumps(sorted(kept.union(names)))),
            )

    def add_waiting(self, waiting: Waiting) -> None:
        """Note durably that a session has something to be captured, in the place of what it had.

        Its number is given here.
        """
        kept = None if waiting.messages is None else json.dumps(waiting.messages)
        self._write(
            "INSERT OR REPLACE INTO waiting "
            "(host, session, org, project, folder, transcript, messages) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*astuple(waiting)[1:-1], kept),
        )

    def waiting(self) -> list[Waiting]:
        """Return what is to be captured, the oldest first."""
        rows = self._read(
            "SELECT id, host, session, org, project, folder, transcript, messages FROM waiting "
            "ORDER BY id"
        )
        waiting = []
        for number, host, session, org, project, folder, transcript, kept in rows:
            messages = json.loads(kept) if kept else None
            place = (host, session, org, project, folder, transcript)
            waiting.append(Waiting(number, *place, messages=messages))
        return waiting

    def is_waiting(self, number: int) -> bool:
        """Return whether something still waits, which another process may have captured."""
        return bool(self._read("SELECT 1 FROM waiting WHERE id = ?", (number,)))

    @contextmanager
    def hold_captures(self) -> Iterator[None]:
        """Let no other process capture what waits, or forget what is being captured, meanwhile.

        Raises:
            TimeoutError: Another one does so for long.
        """
        if not self._path.is_file():
            yield
            return
        with filelock.FileLock(self._path.with_suffix(".held"), _HOLD_SECONDS, mode=0o600):
            yield

    def drop_waiting(self, number: int) -> None:
        """Forget what is captured now."""
        self._write("DELETE FROM waiting WHERE id = ?", (number,))

    def note_event(self, event: HookEvent) -> None:
        """Keep what a hook did, among the newest thousand."""
        self._write(
            "INSERT INTO events (at, host, event, project, milliseconds, did, failure) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            astuple(event),
        )
        self._write(
            "DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?", (_KEPT_EVENTS,)
        )

    def events(self, *, limit: int, failed: bool = False) -> list[HookEvent]:
        """Return what hooks did, or what of it failed, the newest first."""
        which = "WHERE failure IS NOT NULL " if failed else ""
        rows = self._read(
            "SELECT at, host, event, project, milliseconds, did, failure FROM events "  # noqa: S608
            f"{which}ORDER BY id DESC LIMIT ?",
            (limit,),
        )
        return [HookEvent(*row) for row in rows]

    def pause(self, until: datetime | None) -> None:
        """Let hooks do nothing until a moment; None lets them go on."""
        now = datetime.now(UTC).isoformat()
        self._write("UPDATE pauses SET until = ? WHERE until > ?", (now, now))
        if until is not None:
            self._write("INSERT INTO pauses VALUES (?, ?)", (now, until.isoformat()))
        if until is None:
            self._write("DELETE FROM settings WHERE name = 'paused_until'")
        else:
            self._write(
                "INSERT OR REPLACE INTO settings VALUES ('paused_until', ?)", (until.isoformat(),)
            )

    def paused_until(self) -> datetime | None:
        """Return until when hooks do nothing; None where they are not paused."""
        rows = self._read("SELECT value FROM settings WHERE name = 'paused_until'")
        until = datetime.fromisoformat(rows[0][0]) if rows else None
        return until if until is not None and until > datetime.now(UTC) else None

    def pauses(self) -> list[tuple[datetime, datetime]]:
        """Return when hooks were paused, and until when."""
        rows = self._read("SELECT start, until FROM pauses")
        return [(datetime.fromisoformat(start), datetime.fromisoformat(end)) for start, end in rows]

    def _read(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if not self._path.is_file():
            return []
        with self._open() as connection:
            return connection.execute(query, tuple(values)).fetchall()

    def _write(self, query: str, values: Sequence[object] = ()) -> None:
        with self._open() as connection:
            connection.execute(query, tuple(values))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS)) as connection:
                self._path.chmod(0o600)
                connection.execute("PRAGMA secure_delete = ON")
                connection.executescript(_TABLES)
                with connection:
                    yield connection
        except sqlite3.Error as error:
            raise StoreError(
                f"{self._path}: the state of the hooks cannot be used ({error}). Remove the file; "
                "what was captured stays, and transcripts are read anew."
            ) from error
