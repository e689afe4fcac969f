"""Running the server: the socket, the processes, the log, and a stop that loses nothing."""

from __future__ import annotations

import gc
import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import multiprocess

from ekphory.catalog.access_keys import AccessKeys
from ekphory.catalog.database import Database
from ekphory.config import read_settings
from ekphory.errors import EkphoryError, InvalidInput
from ekphory.server.app import create_app
from ekphory.server.limits import TimedConfig
from ekphory.server.options import VARIABLE, ServerOptions, is_loopback
from ekphory.server.request_log import LOG, Application
from ekphory.service.configuration import read_configuration
from ekphory.service.handles import catalog_file
from ekphory.service.learning import ExtractionSettings, read_learnt
from ekphory.service.memory_service import MemoryService

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
            process = multiprocess.Process(self.config, [self.sockets[place % len(self.sockets)]])
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
    """Return a core for each process; none where there are more cores or fewer."""
    if sys.platform != "linux":
        return []
    usable = sorted(os.sched_getaffinity(0))
    return usable if len(usable) == count else []


def listeners_in_place_of(listener: socket.socket, *, count: int) -> list[socket.socket]:
    """Return so many listeners at one address, in place of the one that was opened there.

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


# Running the server: the socket, the processes, the log, and a stop that loses nothing.

_STOP_SECONDS = 60
"""So long a stop waits for requests that are being answered."""
_START_SECONDS = 60
"""So long a process may take to load what it needs, before it counts as dead and is replaced."""


class NeedsKey(EkphoryError):
    """An address that others can reach needs a key, and there is none."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a server listens.

    Attributes:
        url: Its address.
        store: What it serves.
        needs_key: Whether every request needs a key.
    """

    url: str
    store: str
    needs_key: bool


def serve(options: ServerOptions, *, on_listening: Callable[[Listening], None]) -> None:
    """Serve until the process is told to end; on return every acknowledged write is on disk.

    Args:
        options: How the server is run.
        on_listening: Called once it listens; what is asked from then on is answered.

    Raises:
        NeedsKey: The address can be reached by others, and there is no key.
        InvalidInput: It cannot listen there, or the store cannot be used.
        StoreError: The store or the catalog cannot be opened.
    """
    serve_application(partial(application_of, options), options, on_listening=on_listening)


def serve_application(
    factory: Callable[[], Application],
    options: ServerOptions,
    *,
    on_listening: Callable[[Listening], None],
) -> None:
    """Serve any application over the store in the same way; `serve` says how it ends and fails.

    Args:
        factory: Opens the store and makes the application, in each process that answers.
        options: How the server is run.
        on_listening: Called once it listens.
    """
    check_key(options)
    listeners = _listeners(options)
    listening = Listening(_url(options.host, listeners[0]), options.store, options.needs_key)
    try:
        if options.workers == 1:
            application = _load(factory)
            on_listening(listening)
            config = server_config(lambda: application, options)
            uvicorn.Server(config).run(sockets=listeners)
        else:
            on_listening(listening)
            config = server_config(partial(_load, factory), options)
            EvenProcesses(config, listeners).run()
    finally:
        for listener in listeners:
            listener.close()


def application_of(options: ServerOptions) -> FastAPI:
    """Open the store and make the application over it."""
    # Lance's own lines are not JSON; what it only warns of, such as a compaction that came second
    # to another process's, is made up for later.
    os.environ.setdefault("LANCEDB_LOG", "error")
    settings = read_settings()
    if options.embedder is not None:
        settings = replace(settings, embedder=options.embedder)
    models, document, learnt = read_configuration(settings)
    service = MemoryService(
        options.store,
        models=models,
        catalog=options.catalog,
        extraction=ExtractionSettings(learnt=read_learnt(learnt)),
        document=document,
    )
    return create_app(service, options)


def _load(factory: Callable[[], Application]) -> Application:
    """Make the application, in a process that is there for nothing else."""
    # Each search for garbage among all that is loaded would take a quarter of a second.
    gc.disable()
    try:
        return factory()
    finally:
        # What was loaded stays, and is never searched.
        gc.freeze()
        gc.enable()


def server_config(
    factory: Callable[[], Application], options: ServerOptions, *, log: dict[str, Any] | None = LOG
) -> uvicorn.Config:
    """Return how uvicorn runs an application.

    Uvicorn itself would believe any proxy on this machine, and those that the environment names.

    Args:
        factory: Makes the application, in each process that answers.
        options: How the server is run.
        log: As `logging.config` reads it; None leaves logging as it is.
    """
    return TimedConfig(
        factory,
        header_seconds=options.limits.header_seconds,
        factory=True,
        workers=options.workers,
        proxy_headers=bool(options.trusted_proxies),
        forwarded_allow_ips=list(options.trusted_proxies),
        lifespan="on",
        ws="none",
        access_log=False,
        log_config=log,
        server_header=False,
        timeout_graceful_shutdown=_STOP_SECONDS,
        timeout_worker_healthcheck=_START_SECONDS,
    )


def check_key(options: ServerOptions) -> None:
    """Check that a server that others can reach has a key.

    Raises:
        NeedsKey: It has none.
    """
    if not options.needs_key or options.key is not None:
        return
    with closing(Database(catalog_file(options.store, options.catalog))) as database:
        if AccessKeys(database).any_in_use():
            return
    reason, else_do = f"{options.host} can be reached by others", "listen on 127.0.0.1"
    if is_loopback(options.host):
        reason, else_do = "Every request is to have a key", "leave out --require-key"
    raise NeedsKey(
        f"{reason}, and there is no key yet. Make one with `ekphory keys create --store "
        f"{options.store}`, give one in {VARIABLE}, or {else_do}."
    )


def _listeners(options: ServerOptions) -> list[socket.socket]:
    """Listen where nothing else does, with a socket for each process."""
    bare = options.host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    try:
        listener = socket.create_server((bare, options.port), family=family, backlog=BACKLOG)
        listeners = listeners_in_place_of(listener, count=options.workers)
    except OSError as error:
        raise InvalidInput(
            "host and port",
            f"{options.host}:{options.port}",
            f"cannot be listened on ({error.strerror or error})",
            "Name another port, or 0 for any that is free",
        ) from error
    for each in listeners:
        # Connections inherit it; asyncio sets it only on sockets made with a protocol number.
        # Without it an answer's second packet waits 40 ms for the first one's acknowledgement.
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listeners


def _url(host: str, listener: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"http://{shown}:{listener.getsockname()[1]}"
