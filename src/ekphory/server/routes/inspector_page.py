"""The inspector's page and its files, which anybody may load: they hold nothing of the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as PathField
from fastapi.responses import FileResponse, RedirectResponse

from ekphory.catalog.failures import NotThere
from ekphory.server import inspector

_FOLDER = Path(inspector.__file__).parent
_PAGE = "page.html"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FILES = {path.name: path for path in _FOLDER.iterdir() if path.suffix in _MEDIA_TYPES}
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    # No text can become markup, whatever the scripts do.
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}
_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    # Asked for anew after every upgrade; unchanged files are not sent again.
    "Cache-Control": "no-cache",
}

router = APIRouter(include_in_schema=False)


@router.get("/inspect")
def page() -> FileResponse:
    """Show the page."""
    return _file(_PAGE)


@router.get("/inspect/")
def page_with_slash() -> RedirectResponse:
    """Lead to the page: its files are named relative to it."""
    return RedirectResponse("../inspect")


@router.get("/inspect/{name}")
def file(name: Annotated[str, PathField(max_length=100)]) -> FileResponse:
    """Give one of the page's files."""
    return _file(name)


def _file(name: str) -> FileResponse:
    path = _FILES.get(name)
    if path is None:
        raise NotThere("The inspector has no such file")
    return FileResponse(path, media_type=_MEDIA_TYPES[path.suffix], headers=_HEADERS)
