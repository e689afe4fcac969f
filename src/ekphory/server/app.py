"""The application: all endpoints, inside the layers that log, let in and limit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import FastAPI
from starlette.middleware import Middleware

from ekphory import __version__
from ekphory.server.errors import add_error_handlers
from ekphory.server.limits import guard
from ekphory.server.options import ServerOptions
from ekphory.server.request_log import ASSETS, Metrics
from ekphory.server.routes import (
    configuration,
    inspect,
    memories,
    models,
    revisions,
    semantic,
    system,
    verbs,
)
from ekphory.service.memory_service import MemoryService

_ABOUT = (
    "Memory for AI agents. The paths under `/api/v2` are those of MemMachine's REST API; its "
    "released clients work unchanged. Those under `/api/v1/memory` are the verbs of `Memory` in "
    "Python. Reranking is Cohere's, Jina's, vLLM's, Infinity's, TEI's and Memos'; embeddings are "
    "OpenAI's and Cohere's."
)
_THREADS_FOR_THE_REST = 4
"""Such as /health, which nothing may keep waiting."""
_ROUTERS = (
    # First what is asked most: routers are tried in order.
    memories.memories_router,
    memories.projects_router,
    verbs.verbs_router,
    revisions.revisions_router,
    revisions.capture_router,
    semantic.features_router,
    semantic.sets_router,
    semantic.categories_router,
    semantic.extraction_router,
    memories.episodic_config_router,
    configuration.server_config_router,
    models.rerank_router,
    models.embeddings_router,
    inspect.inspect_router,
    inspect.inspector_page_router,
    system.system_router,
)


def create_app(
    service: MemoryService, options: ServerOptions, *, layers: list[Middleware] | None = None
) -> FastAPI:
    """Make the application over an open service, which it closes when it stops.

    Args:
        service: What answers.
        options: How the server is run.
        layers: What requests pass on their way; None for those that log, let in and limit.
    """
    limits = options.limits

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # LoadLimit lets each kind of request use its share.
        anyio.to_thread.current_default_thread_limiter().total_tokens = (
            limits.threads + limits.write_threads + _THREADS_FOR_THE_REST
        )
        yield
        # Every request has been answered; what they wrote is finished here.
        await anyio.to_thread.run_sync(service.close)

    metrics = Metrics()
    app = FastAPI(
        title="ekphory",
        version=__version__,
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        middleware=guard(service.keys, options, metrics) if layers is None else layers,
    )
    app.state.service = service
    app.state.metrics = metrics
    app.state.limits = limits
    for router in _ROUTERS:
        app.include_router(router)
    app.mount(ASSETS.rstrip("/"), system.docs_assets())
    add_error_handlers(app)
    return app
