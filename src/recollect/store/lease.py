"""The writer's lease: on object storage, where no file can be locked, one process may write.

Making a Lance table fails when it is there already, also on object storage; so the process that
makes the lease's table is the writer until it gives it back, or lets it run out.
"""

from __future__ import annotations

import os
import socket
import uuid
from datetime import datetime, timedelta

import lancedb
import pyarrow as pa

from recollect.errors import StoreLocked
from recollect.moments import now_utc

LEASE_TABLE = "writer_lease"
LEASE_TIME = timedelta(minutes=10)
_SCHEMA = pa.schema(
    [("holder", pa.string()), ("token", pa.string()), ("until", pa.timestamp("us", tz="UTC"))]
)


class WriterLease:
    """Held by one process at a time; renewed by its writes, free ten minutes after the last."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._token = uuid.uuid4().hex
        self._until: datetime | None = None

    def hold(self) -> None:
        """Make sure that this process may write.

        Raises:
            StoreLocked: Another process holds the lease.
        """
        if self._until is not None and now_utc() < self._until - LEASE_TIME / 2:
            return
        connection = lancedb.connect(self._uri)
        if self._until is not None:
            self._renew(connection)
            return
        try:
            connection.create_table(LEASE_TABLE, data=self._row())
        except ValueError:
            self._take_over(connection)
        self._until = now_utc() + LEASE_TIME

    def give_back(self) -> None:
        """Let the next process write at once."""
        if self._until is not None:
            self._until = None
            lancedb.connect(self._uri).drop_table(LEASE_TABLE)

    def _renew(self, connection: lancedb.DBConnection) -> None:
        table = connection.open_table(LEASE_TABLE)
        if table.to_arrow()["token"].to_pylist() != [self._token]:
            self._until = None
            self._refuse(table)
        connection.create_table(LEASE_TABLE, data=self._row(), mode="overwrite")
        self._until = now_utc() + LEASE_TIME

    def _take_over(self, connection: lancedb.DBConnection) -> None:
        table = connection.open_table(LEASE_TABLE)
        until = table.to_arrow()["until"].to_pylist()
        if until and until[0] > now_utc():
            self._refuse(table)
        connection.drop_table(LEASE_TABLE)
        try:
            connection.create_table(LEASE_TABLE, data=self._row())
        except ValueError:
            # Another process took it over in the same moment.
            self._refuse(connection.open_table(LEASE_TABLE))

    def _refuse(self, table: lancedb.table.Table) -> None:
        rows = table.to_arrow().to_pylist()
        holder = f"{rows[0]['holder']} until {rows[0]['until']:%H:%M:%S} UTC" if rows else "another"
        raise StoreLocked(
            f"{self._uri}: on object storage one process writes at a time, and {holder} does. "
            "Close it there, or wait until its lease has run out."
        )

    def _row(self) -> pa.Table:
        holder = f"{socket.gethostname()} process {os.getpid()}"
        until = now_utc() + LEASE_TIME
        return pa.table([[holder], [self._token], [until]], schema=_SCHEMA)
