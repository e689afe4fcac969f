"""The writer's lease: on object storage, where no file can be locked, one process may write.

The lease is one row of a Lance table. Commits to a Lance table come one after the other, also on
object storage, and an update that loses to another is evaluated anew. So the process that replaces
the row it has read is the writer, until it gives the lease back or lets it run out.

Making a table is not as safe: of two processes that make it in the same moment, the slower one
replaces what the faster one made. So a new row is left alone until no such process can be under
way any more.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import lancedb
import pyarrow as pa

from ekphory.errors import StoreLocked
from ekphory.moments import now_utc
from ekphory.store.connection import connect
from ekphory.store.lance_errors import told

LEASE_TABLE = "writer_lease"
LEASE_TIME = timedelta(minutes=10)
SETTLING_SECONDS = 1.0
"""So long a new table is left alone: once in the life of a store."""
_NOBODY = ""
_FREE = datetime(1970, 1, 1, tzinfo=UTC)
# Long enough for every reader of an older version, short enough that few pile up.
_VERSIONS_KEPT = timedelta(hours=1)
_SCHEMA = pa.schema(
    [("holder", pa.string()), ("token", pa.string()), ("until", pa.timestamp("us", tz="UTC"))]
)


@dataclass(frozen=True, slots=True)
class _Lease:
    """The row: who writes until when, under a token that no other row ever had."""

    holder: str
    token: str
    until: datetime


class WriterLease:
    """Held by one process at a time; renewed by its writes, free ten minutes after the last."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._held: _Lease | None = None

    def hold(self) -> None:
        """Make sure that this process may write.

        Raises:
            StoreLocked: Another process holds the lease.
            StoreError: The lease cannot be read or written.
        """
        if self._held is not None and now_utc() < self._held.until - LEASE_TIME / 2:
            return
        with told("lock", self._uri):
            table = self._table()
            if self._held is None or not self._supersede(table, self._held):
                self._take(table)

    def give_back(self) -> None:
        """Let the next process write at once."""
        if self._held is not None:
            held, self._held = self._held, None
            with told("lock", self._uri):
                _replace(self._table(), held, _lease(until=_FREE))

    def _supersede(self, table: lancedb.table.Table, earlier: _Lease) -> bool:
        mine = _lease(until=now_utc() + LEASE_TIME)
        self._held = mine if _replace(table, earlier, mine) else None
        return self._held is not None

    def _take(self, table: lancedb.table.Table) -> None:
        while True:
            table.checkout_latest()
            found = _read(table)
            if found.until > now_utc():
                raise StoreLocked(
                    f"{self._uri}: on object storage one process writes at a time, and "
                    f"{found.holder} does until {found.until:%H:%M:%S} UTC. "
                    "Close it there, or wait until its lease has run out."
                )
            if found.holder == _NOBODY:
                time.sleep(SETTLING_SECONDS)
            if self._supersede(table, found):
                return

    def _table(self) -> lancedb.table.Table:
        connection = connect(self._uri)
        try:
            first = _Lease(_NOBODY, uuid.uuid4().hex, _FREE)
            return connection.create_table(LEASE_TABLE, data=_row(first))
        except (ValueError, RuntimeError):
            # It is there, or another process is making it; whatever else it is, opening tells.
            return connection.open_table(LEASE_TABLE)


def _replace(table: lancedb.table.Table, found: _Lease, wanted: _Lease) -> bool:
    """Replace the row, unless another process has done so since it was read."""
    values = {"holder": wanted.holder, "token": wanted.token, "until": wanted.until}
    # The update must see a table that was made anew since.
    table.checkout_latest()
    result = table.update(where=f"token = '{found.token}'", values=values)
    replaced = int(result.rows_updated) == 1
    if replaced:
        table.optimize(cleanup_older_than=_VERSIONS_KEPT)
    return replaced


def _read(table: lancedb.table.Table) -> _Lease:
    (row,) = table.to_arrow().to_pylist()
    # Goes into a condition, so it must be what we wrote.
    return _Lease(row["holder"], uuid.UUID(row["token"]).hex, row["until"])


def _row(lease: _Lease) -> pa.Table:
    return pa.table([[lease.holder], [lease.token], [lease.until]], schema=_SCHEMA)


def _lease(*, until: datetime) -> _Lease:
    return _Lease(f"{socket.gethostname()} process {os.getpid()}", uuid.uuid4().hex, until)
