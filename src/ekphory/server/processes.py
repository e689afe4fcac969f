"""Several processes that answer at one address, each with connections of its own."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Sequence

import uvicorn
from uvicorn.supervisors import multiprocess

BACKLOG = 2048
_log = logging.getLogger("ekphory.server")


class EvenProcesses(multiprocess.Multiprocess):
    """Uvicorn's processes, among which the system deals out connections evenly.

    Processes that share one listener race for its connections: often one of them gets nearly all,
    and answers alone while the others rest.

    On Linux, as many processes as there are cores get one each: a request goes from thread to
    thread within its process, which is sooner on the same core, where the caches know it. One that
    replaces another may run anywhere.
    """

    def __init__(self, config: uvicorn.Config, listeners: Sequence[socket.socket]) -> None:
        """Name what is listened on; a process that replaces another listens on all of it."""
        super().__init__(config, sockets=list(listeners))

    def init_processes(self) -> None:
        """Start a process for each listener; with a single one, the processes share it."""
        cores = _cores_of_their_own(self.processes_num)
        for place in range(self.processes_num):
            own = self.sockets[place % len(self.sockets)]
            process = multiprocess.Process(self.config, [own])
            process.start()
            if cores and process.pid is not None:
                os.sched_setaffinity(process.pid, {cores[place]})
            # Held by the process alone, its end tells at once that the process has died.
            process.child_conn.close()
            self.processes.append(process)

    def handle_ttou(self) -> None:
        """Keep every process: what waits at its listener no other one would answer."""
        _log.warning("The number of processes is not lowered; start the server with fewer.")


def _cores_of_their_own(count: int) -> list[int]:
    """Give a core for each process; none where there are more cores or fewer."""
    if sys.platform != "linux":
        return []
    usable = sorted(os.sched_getaffinity(0))
    return usable if len(usable) == count else []


def listeners_in_place_of(listener: socket.socket, *, count: int) -> list[socket.socket]:
    """Give so many listeners at one address, in place of the one that was opened there.

    Only Linux deals connections out among listeners; elsewhere it stays the one.

    Args:
        listener: It has the address for itself, and is closed where others take its place.
        count: How many.

    Raises:
        OSError: Another program took the address meanwhile.
    """
    if count == 1 or sys.platform != "linux":
        return [listener]
    address, family = listener.getsockname(), listener.family
    listener.close()
    return [
        socket.create_server(address, family=family, backlog=BACKLOG, reuse_port=True)
        for _ in range(count)
    ]
