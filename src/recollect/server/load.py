"""How much is taken: the size of a body, and the number of requests under way."""

from __future__ import annotations

from enum import Enum
from http import HTTPStatus

import anyio
from fastapi.responses import JSONResponse

from recollect.server.asgi import Application, AsgiMessage, Receive, Scope, Send, header, is_open
from recollect.server.errors import RETRY, error_answer
from recollect.server.half_characters import holds_half_characters
from recollect.server.options import Limits


class _Unread(Enum):
    """Why a body was not read."""

    TOO_LARGE = "too large"
    TOO_SLOW = "too slow"
    CUT_OFF = "cut off"


class LoadLimit:
    """Reads a body up to its limit and hands the request on, unless too many are under way.

    What no store could keep and no answer could carry is refused here as well, for all endpoints.
    """

    def __init__(self, application: Application, *, limits: Limits) -> None:
        self._application = application
        self._limits = limits
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or is_open(scope["path"]):
            await self._application(scope, receive, send)
        elif self._under_way >= self._limits.concurrency:
            await _busy(scope["path"])(scope, receive, send)
        else:
            self._under_way += 1
            try:
                await self._within_size(scope, receive, send)
            finally:
                self._under_way -= 1

    async def _within_size(self, scope: Scope, receive: Receive, send: Send) -> None:
        most = self._limits.body_bytes
        announced = header(scope, b"content-length") or "0"
        is_large = announced.isdecimal() and int(announced[:20]) > most
        body: bytes | _Unread = _Unread.TOO_SLOW
        with anyio.move_on_after(self._limits.body_seconds):
            body = _Unread.TOO_LARGE if is_large else await _read(receive, most)
        if body is _Unread.CUT_OFF:
            # Nobody is left to be answered, and a part of a request must not be acted on.
            return
        if isinstance(body, _Unread):
            await self._unread(scope["path"], body)(scope, receive, send)
            return
        if holds_half_characters(body):
            await _unreadable(scope["path"])(scope, receive, send)
            return
        await self._application(scope, _replayed(body, receive), send)

    def _unread(self, path: str, why: _Unread) -> JSONResponse:
        if why is _Unread.TOO_SLOW:
            return _too_slow(path, self._limits.body_seconds)
        return _too_large(path, self._limits.body_bytes)


async def _read(receive: Receive, most: int) -> bytes | _Unread:
    """Read a body of at most `most` bytes."""
    parts = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return _Unread.CUT_OFF
        parts += message.get("body", b"")
        if len(parts) > most:
            return _Unread.TOO_LARGE
        if not message.get("more_body", False):
            return bytes(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read already, and then what else is received."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> AsgiMessage:
        return waiting.pop() if waiting else await receive()

    return replay


def _unreadable(path: str) -> JSONResponse:
    return error_answer(
        path,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "A text holds half of a surrogate pair, which UTF-8 cannot carry. Remove it.",
        kind="InvalidInput",
    )


def _busy(path: str) -> JSONResponse:
    return error_answer(
        path,
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Too many requests are under way. Try again in a moment.",
        kind="Overloaded",
        headers=RETRY,
    )


def _too_slow(path: str, seconds: float) -> JSONResponse:
    return error_answer(
        path,
        HTTPStatus.REQUEST_TIMEOUT,
        f"The body took longer than {seconds:g} s to arrive. Send it again.",
        kind="TooSlow",
        headers={"Connection": "close"},
    )


def _too_large(path: str, most: int) -> JSONResponse:
    return error_answer(
        path,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"The body is larger than {most:,} bytes. Send less at a time.",
        kind="TooLarge",
        # What is left of the body is not read.
        headers={"Connection": "close"},
    )
