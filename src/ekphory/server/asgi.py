"""The types of ASGI, and what the layers around the application share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS = frozenset({"/health", "/api/v2/health", "/docs", "/openapi.json", "/inspect"})
"""Answered without a key, and whatever the load."""
ASSETS = "/docs/"
INSPECTOR = "/inspect/"


def is_open(path: str) -> bool:
    """Whether a path is answered without a key."""
    return path in OPEN_PATHS or path.startswith((ASSETS, INSPECTOR))


def header(scope: Scope, name: bytes) -> str | None:
    """Give a request's header, or None where it has none of that name (in small letters)."""
    found = (value for key, value in scope["headers"] if key == name)
    value: bytes | None = next(found, None)
    return None if value is None else value.decode("latin-1")
