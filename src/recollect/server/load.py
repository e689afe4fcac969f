"""How much is taken: the size of a body, and the number of requests under way."""

from __future__ import annotations

from http import HTTPStatus

from fastapi.responses import JSONResponse

from recollect.server.asgi import Application, AsgiMessage, Receive, Scope, Send, header, is_open
from recollect.server.errors import RETRY, error_answer
from recollect.server.half_characters import holds_half_characters
from recollect.server.options import Limits


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
        body = None if is_large else await _read(receive, most)
        if body is None:
            await _too_large(scope["path"], most)(scope, receive, send)
            return
        if holds_half_characters(body):
            await _unreadable(scope["path"])(scope, receive, send)
            return
        await self._application(scope, _replayed(body, receive), send)


async def _read(receive: Receive, most: int) -> bytes | None:
    """Read a body; None where it is longer than `most` bytes."""
    parts = bytearray()
    while True:
        message = await receive()
        parts += message.get("body", b"")
        if len(parts) > most:
            return None
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


def _too_large(path: str, most: int) -> JSONResponse:
    return error_answer(
        path,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"The body is larger than {most:,} bytes. Send less at a time.",
        kind="TooLarge",
        # What is left of the body is not read.
        headers={"Connection": "close"},
    )
