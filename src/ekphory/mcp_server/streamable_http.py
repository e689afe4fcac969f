"""Serving over streamable HTTP, behind the same gate as the REST server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import cast

import anyio.to_thread
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.routing import Route

from ekphory.catalog.access_keys import AccessKeys
from ekphory.catalog.database import Database
from ekphory.config import Settings
from ekphory.mcp_server.calls import Calls
from ekphory.mcp_server.memories import Memories, configured_scope
from ekphory.mcp_server.protocol import Context, protocol_server
from ekphory.mcp_server.toolsets import Toolset, tools_of
from ekphory.server.asgi import Application
from ekphory.server.caller import Caller
from ekphory.server.gate import Gate
from ekphory.server.load import LoadLimit
from ekphory.server.metrics import Metrics
from ekphory.server.options import ServerOptions
from ekphory.server.request_log import RequestLog
from ekphory.server.serving import Listening, serve_application
from ekphory.service.catalog_file import catalog_file

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
    return _guarded(Starlette(routes=[route], lifespan=lifespan), AccessKeys(database), server)


def _guarded(application: Application, keys: AccessKeys, server: ServerOptions) -> Application:
    """Put an application inside the layers that log, let in and limit; the last is outermost."""
    layers: Application = LoadLimit(application, limits=server.limits)
    layers = Gate(layers, keys=keys, options=server)
    if server.origins:
        layers = CORSMiddleware(
            layers,
            allow_origins=list(server.origins),
            allow_methods=["POST"],
            allow_headers=["*"],
        )
    return RequestLog(layers, metrics=Metrics())


def _caller_of(context: Context) -> Caller:
    """Give whoever the gate has let in."""
    request = cast("Request", context.request)
    caller: Caller = request.scope["state"]["caller"]
    return caller
