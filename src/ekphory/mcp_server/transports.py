"""Serving the process that started this one, over its pipes, or over streamable HTTP."""

from __future__ import annotations

import json
import logging.config
import signal
import socket
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO, cast

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectSendStream
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from ekphory.catalog.access_keys import AccessKeys
from ekphory.catalog.database import Database
from ekphory.config import Settings
from ekphory.mcp_server.memmachine import Toolset, tools_of
from ekphory.mcp_server.protocol import Calls, Context, protocol_server
from ekphory.mcp_server.tool import Memories, configured_scope
from ekphory.server.auth import Caller
from ekphory.server.limits import guard
from ekphory.server.options import ServerOptions
from ekphory.server.request_log import LOG, Application, Metrics
from ekphory.server.serving import Listening, serve_application
from ekphory.service.handles import catalog_file

# Messages that the SDK cannot read: it would leave the client waiting.

Incoming = SessionMessage | Exception
_REMEDY = (
    "The message cannot be read. Send JSON-RPC 2.0, one message a line, in which no text holds "
    "half of a surrogate pair."
)


async def hand_on(
    incoming: AsyncIterable[Incoming],
    readable: MemoryObjectSendStream[Incoming],
    answer: Callable[[SessionMessage], Awaitable[None]],
) -> None:
    """Hand on what can be read, and answer requests that cannot be."""
    async with readable:
        async for item in incoming:
            refusal = _refusal(item) if isinstance(item, ValidationError) else None
            if refusal is None:
                await readable.send(item)
            else:
                await answer(refusal)


def _refusal(error: ValidationError) -> SessionMessage | None:
    """Return the answer to the request in an unreadable line; None where no request is found."""
    line = error.errors(include_url=False)[0]["input"]
    try:
        # More lenient than the SDK, as far as is needed to find the id.
        message: Any = json.loads(line) if isinstance(line, str) else None
    except ValueError:
        return None
    is_request = isinstance(message, dict) and "method" in message
    request_id = message.get("id") if is_request else None
    if not isinstance(request_id, str | int):
        return None
    problem = types.ErrorData(code=types.PARSE_ERROR, message=_REMEDY)
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=problem))


def serve_stdio(settings: Settings, toolset: Toolset, *, catalog: Path | None = None) -> None:
    """Serve until the other end closes the pipe; on return every acknowledged write is on disk.

    Standard output carries the protocol alone; the log goes to standard error. Ctrl-C ends the
    process at once, which loses nothing that was acknowledged.

    Args:
        settings: The store, its models, and the scope that every call is bound to.
        toolset: Which tools are offered.
        catalog: File of the catalog, for MemMachine's tools; None for one in the store's directory.

    Raises:
        EkphoryError: The store or a model cannot be used.
    """
    # A thread waits for the pipe, and no exception would reach it there.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    logging.config.dictConfig(LOG)
    memories = Memories(settings, catalog=catalog)
    _serve_lines(memories, settings, toolset)


def serve_connection(
    connection: socket.socket, memories: Memories, settings: Settings, toolset: Toolset
) -> None:
    """Serve the other end of a socket as `serve_stdio` serves two pipes; closes `memories`."""
    with (
        connection.makefile("r", encoding="utf-8", errors="replace") as incoming,
        connection.makefile("w", encoding="utf-8") as outgoing,
    ):
        _serve_lines(memories, settings, toolset, (incoming, outgoing))


def _serve_lines(
    memories: Memories,
    settings: Settings,
    toolset: Toolset,
    streams: tuple[TextIO, TextIO] | None = None,
) -> None:
    calls = Calls(memories, tools_of(toolset, memories), configured_scope(settings))
    server = protocol_server(calls, caller_of=lambda _: None, on_end=memories.close)
    anyio.run(_serve, server, streams)


async def _serve(server: Server[None], streams: tuple[TextIO, TextIO] | None) -> None:
    lines = stdio_server(*map(anyio.wrap_file, streams)) if streams else stdio_server()
    async with lines as (incoming, outgoing), anyio.create_task_group() as tasks:
        send, receive = anyio.create_memory_object_stream[Incoming](0)
        tasks.start_soon(hand_on, incoming, send, outgoing.send)
        async with receive:
            await server.run(receive, outgoing, server.create_initialization_options())


# Streamable HTTP, behind the same gate as the REST server.

PATH = "/mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """What is served over HTTP, and how.

    Attributes:
        settings: The store, its models, and the scope that every caller is bound to.
        toolset: Which tools are offered.
        server: Where it listens, who may come in, and how much at a time.
    """

    settings: Settings
    toolset: Toolset
    server: ServerOptions


def serve_http(options: HttpOptions, *, on_listening: Callable[[Listening], None]) -> None:
    """Serve until the process is told to end; on return every acknowledged write is on disk.

    Raises:
        NeedsKey: The address can be reached by others, and there is no key.
        InvalidInput: It cannot listen there, or the store cannot be used.
        StoreError: The store or the catalog cannot be opened.
    """
    serve_application(partial(application_of, options), options.server, on_listening=on_listening)


def application_of(options: HttpOptions) -> Application:
    """Open the store and make the application over it."""
    server = options.server
    memories = Memories(options.settings, catalog=server.catalog)
    database = Database(catalog_file(server.store, server.catalog))

    def end() -> None:
        memories.close()
        database.close()

    scope = configured_scope(options.settings)
    calls = Calls(memories, tools_of(options.toolset, memories), scope)
    protocol = protocol_server(calls, caller_of=_caller_of, on_end=end)
    # Without sessions: each request is let in by its own key, and any process can answer it.
    manager = StreamableHTTPSessionManager(
        protocol,
        json_response=True,
        stateless=True,
        max_request_body_size=server.limits.body_bytes,
        # The gate looks at host and origin, and knows when a key makes up for them.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = server.limits.threads
        async with manager.run():
            yield

    # Only POST: this server never speaks first, so it keeps no streams open.
    route = Route(PATH, endpoint=StreamableHTTPASGIApp(manager), methods=["POST"])
    layers = guard(AccessKeys(database), server, Metrics(), methods=["POST"])
    return Starlette(routes=[route], lifespan=lifespan, middleware=layers)


def _caller_of(context: Context) -> Caller:
    """Return whoever the gate has let in."""
    request = cast("Request", context.request)
    caller: Caller = request.scope["state"]["caller"]
    return caller
