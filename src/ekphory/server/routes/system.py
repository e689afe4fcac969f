"""Health, metrics, and the description of the API."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from openapi_ui_bundles import swagger_ui
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from ekphory import __version__
from ekphory.server.request_log import ASSETS
from ekphory.server.routes.context import MAY_READ, REFUSALS, TheMetrics, TheService

system_router = APIRouter(tags=["System"])


@system_router.get("/health")
@system_router.get("/api/v2/health")
def health(service: TheService) -> dict[str, str]:
    """Say that the server answers, and whether the store's upkeep succeeds."""
    return {
        "status": "healthy",
        "service": "ekphory",
        "version": __version__,
        "upkeep": "failing" if service.upkeep_fails() else "healthy",
    }


@system_router.get("/metrics", response_class=Response, responses=REFUSALS, dependencies=MAY_READ)
@system_router.get(
    "/api/v2/metrics", response_class=Response, responses=REFUSALS, dependencies=MAY_READ
)
def metrics(measured: TheMetrics, service: TheService) -> Response:
    """Return counts and times of the process that answers, as Prometheus reads them."""
    measured.extraction(service.extraction.state())
    return Response(generate_latest(measured.registry), media_type=CONTENT_TYPE_LATEST)


@system_router.get("/docs", include_in_schema=False)
def docs(request: Request) -> HTMLResponse:
    """Show the description of the API; all that the page needs comes from this server."""
    return get_swagger_ui_html(
        openapi_url=str(request.app.openapi_url),
        title=request.app.title,
        swagger_js_url=f"{ASSETS}swagger-ui-bundle.js",
        swagger_css_url=f"{ASSETS}swagger-ui.css",
        swagger_favicon_url=f"{ASSETS}favicon-32x32.png",
    )


def docs_assets() -> StaticFiles:
    """Return the files of the page."""
    return StaticFiles(directory=Path(swagger_ui.static_path))
