"""Connections that say nothing are closed."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class TimedProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, which closes a connection whose request's head does not come.

    Uvicorn bounds the pause between two requests, but neither the wait for the first one nor the
    time that a head may take.
    """

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        self._await_head()

    def on_message_begin(self) -> None:
        """Wait for the rest of a head."""
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        """Wait no longer."""
        self._cancel()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._cancel()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._cancel()
        seconds = getattr(self.config, "header_seconds", None)
        if seconds is not None:
            self._head = self.loop.call_later(seconds, self.transport.close)

    def _cancel(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


class TimedConfig(uvicorn.Config):
    """Uvicorn's settings, with connections that are timed.

    Args:
        application: As uvicorn takes it.
        header_seconds: How long a head may take, from the connection or from its first byte.
        settings: Uvicorn's own.
    """

    def __init__(self, application: Any, *, header_seconds: float, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(application, http=TimedProtocol, **settings)
        self.header_seconds = header_seconds
