"""The application: all endpoints, inside the layers that log, let in and limit; and its health."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from openapi_ui_bundles import swagger_ui
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
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
    verbs,
)
from ekphory.server.routes.context import REFUSALS, ToRead
from ekphory.service.memory_service import MemoryService

_ABOUT = (
    "Memory for AI agents. The paths under `/api/v2` are those of MemMachine's REST API; its "
    "released clients work unchanged. Those under `/api/v1/memory` are the verbs of `Memory` in "
    "Python. Reranking is Cohere's, Jina's, vLLM's, Infinity's, TEI's and Memos'; embeddings are "
    "OpenAI's and Cohere's."
)
_TITLE = "ekphory"
_THREADS_FOR_THE_REST = 4
"""Such as /health, which nothing may keep waiting."""


# Health, metrics, and the description of the API.

system_router = APIRouter(tags=["System"])


@system_router.get("/health")
@system_router.head("/health", include_in_schema=False)
@system_router.get("/api/v2/health")
@system_router.head("/api/v2/health", include_in_schema=False)
def health(request: Request) -> dict[str, str]:
    """Say that the server answers, and whether the store's upkeep succeeds."""
    upkeep = "failing" if request.app.state.service.handles.upkeep_fails() else "healthy"
    return {"status": "healthy", "service": "ekphory", "version": __version__, "upkeep": upkeep}


@system_router.get("/metrics", response_class=Response, responses=REFUSALS)
@system_router.get("/api/v2/metrics", response_class=Response, responses=REFUSALS)
def metrics(session: ToRead) -> Response:
    """Return counts and times of the process that answers, as Prometheus reads them.

    For keys that are bound to nothing.
    """
    session.caller.check_unbound()
    session.metrics.extraction(session.service.extraction.state())
    return Response(generate_latest(session.metrics.registry), media_type=CONTENT_TYPE_LATEST)


@system_router.get("/docs", include_in_schema=False)
def show_docs(request: Request) -> HTMLResponse:
    """Show the description of the API; all that the page needs comes from this server."""
    return get_swagger_ui_html(
        openapi_url=str(request.app.openapi_url),
        title=request.app.title,
        swagger_js_url=f"{ASSETS}swagger-ui-bundle.js",
        swagger_css_url=f"{ASSETS}swagger-ui.css",
        swagger_favicon_url=f"{ASSETS}favicon-32x32.png",
    )


# The application.

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
    system_router,
)

PATHS = frozenset(route.path for router in _ROUTERS for route in router.routes)  # type: ignore[attr-defined]
"""All that is answered, as routes have it."""


def describe_routes(is_answered: Callable[[APIRoute], bool]) -> dict[str, Any]:
    """Describe in the form of OpenAPI those of all routes that somebody answers."""
    routes = [
        route
        for router in _ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and is_answered(route)
    ]
    return get_openapi(title=_TITLE, version=__version__, description=_ABOUT, routes=routes)


def mount_assets(app: FastAPI) -> None:
    """Serve the files of the page that shows the description."""
    app.mount(ASSETS.rstrip("/"), StaticFiles(directory=Path(swagger_ui.static_path)))


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

    async def count(org: str) -> int:
        return await anyio.to_thread.run_sync(service.count, org)

    metrics = Metrics()
    app = FastAPI(
        title=_TITLE,
        version=__version__,
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        middleware=guard(service.keys, options, metrics, count=count) if layers is None else layers,
    )
    app.state.service = service
    app.state.metrics = metrics
    app.state.limits = limits
    for router in _ROUTERS:
        app.include_router(router)
    mount_assets(app)
    add_error_handlers(app)
    return app
