"""How much is taken: the size and shape of a body, and the number of requests under way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus

import anyio
from anyio.lowlevel import checkpoint
from fastapi.responses import JSONResponse

from ekphory.server.asgi import Application, AsgiMessage, Receive, Scope, Send, header, is_open
from ekphory.server.body import WINDOW_BYTES, BodyScan, Trouble
from ekphory.server.caller import Caller
from ekphory.server.errors import RETRY, error_answer
from ekphory.server.options import Limits

_WRITES = frozenset(
    {
        "/api/v2/memories",
        "/api/v2/memories/episodic/delete",
        "/api/v2/memories/semantic/delete",
        "/api/v2/projects/delete",
        "/api/v2/memories/semantic/feature",
        "/api/v2/memories/semantic/feature/update",
    }
)


class _Unread(Enum):
    """Why a body was not read."""

    TOO_LARGE = "too large"
    TOO_SLOW = "too slow"
    CUT_OFF = "cut off"


class Slots:
    """Counts what is under way, of everybody and of each caller.

    Args:
        most: Of everybody.
        most_of_one: Of one caller, so that nobody leaves nothing to the others.
    """

    def __init__(self, *, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._taken: Counter[str] = Counter()

    def is_full(self, caller: str) -> bool:
        """Whether this caller gets no slot at the moment."""
        return self._taken.total() >= self._most or self._taken[caller] >= self._most_of_one

    @contextmanager
    def taken_by(self, caller: str) -> Iterator[None]:
        """Count one more until the block ends."""
        self._taken[caller] += 1
        try:
            yield
        finally:
            self._taken[caller] -= 1
            if not self._taken[caller]:
                del self._taken[caller]


@dataclass(frozen=True, slots=True)
class _Queue:
    """Requests of one kind: how many there may be, and how many are worked on at a time."""

    slots: Slots
    threads: anyio.CapacityLimiter


class LoadLimit:
    """Reads a body up to its limits and hands the request on, unless too many are under way.

    A body on its way takes a slot among those that arrive, and one of those that are answered only
    when it is there. Writes, which wait for a commit, are counted and worked on apart from reads,
    so that neither waits for the other. What no store could keep and no answer could carry is
    refused here as well, for all endpoints.
    """

    def __init__(self, application: Application, *, limits: Limits) -> None:
        self._application = application
        self._limits = limits
        self._arriving = _slots(limits)
        self._reads = _Queue(_slots(limits), anyio.CapacityLimiter(limits.threads))
        self._writes = _Queue(_slots(limits), anyio.CapacityLimiter(limits.write_threads))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or is_open(scope["path"]):
            await self._application(scope, receive, send)
            return
        caller = _caller_name(scope)
        queue = self._writes if is_write(scope) else self._reads
        if self._arriving.is_full(caller) or queue.slots.is_full(caller):
            await _busy(scope["path"])(scope, receive, send)
            return
        with self._arriving.taken_by(caller):
            body = await self._body(scope, receive)
        if body is _Unread.CUT_OFF:
            # Nobody is left to be answered, and a part of a request must not be acted on.
            return
        if not isinstance(body, bytes):
            await self._refusal(scope["path"], body)(scope, receive, send)
        elif queue.slots.is_full(caller):
            await _busy(scope["path"])(scope, receive, send)
        else:
            with queue.slots.taken_by(caller):
                async with queue.threads:
                    await self._application(scope, _replayed(body, receive), send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | _Unread | Trouble:
        announced = header(scope, b"content-length") or "0"
        if announced.isdecimal() and int(announced[:20]) > self._limits.body_bytes:
            return _Unread.TOO_LARGE
        with anyio.move_on_after(self._limits.body_seconds):
            return await self._read(receive)
        return _Unread.TOO_SLOW

    async def _read(self, receive: Receive) -> bytes | _Unread | Trouble:
        """Read a body, and look at each part of it as it comes."""
        parts = bytearray()
        scan = BodyScan(most_values=self._limits.values, most_depth=self._limits.depth)
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return _Unread.CUT_OFF
            piece: bytes = message.get("body", b"")
            if len(parts) + len(piece) > self._limits.body_bytes:
                return _Unread.TOO_LARGE
            parts += piece
            for start in range(0, len(piece), WINDOW_BYTES):
                trouble = scan.feed(piece[start : start + WINDOW_BYTES])
                if trouble is not None:
                    return trouble
                await checkpoint()
            if not message.get("more_body", False):
                return scan.end() or bytes(parts)

    def _refusal(self, path: str, why: _Unread | Trouble) -> JSONResponse:
        match why:
            case _Unread.TOO_SLOW:
                return _too_slow(path, self._limits.body_seconds)
            case Trouble.MANY_VALUES:
                return _too_large(path, f"The body holds more than {self._limits.values:,} values.")
            case Trouble.DEEP:
                return _too_large(path, f"The body is nested deeper than {self._limits.depth:,}.")
            case Trouble.HALF_CHARACTER:
                return _unreadable(path)
            case _:
                return _too_large(
                    path, f"The body is larger than {self._limits.body_bytes:,} bytes."
                )


def is_write(scope: Scope) -> bool:
    """Whether a request changes memories, and so waits until the change is durable."""
    return scope["method"] == "POST" and scope["path"] in _WRITES


def _slots(limits: Limits) -> Slots:
    return Slots(most=limits.concurrency, most_of_one=limits.concurrency_of_one_caller)


def _caller_name(scope: Scope) -> str:
    caller = scope.get("state", {}).get("caller")
    return caller.name if isinstance(caller, Caller) else ""


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
        # What may be left of the body is not read.
        headers={**RETRY, "Connection": "close"},
    )


def _too_slow(path: str, seconds: float) -> JSONResponse:
    return error_answer(
        path,
        HTTPStatus.REQUEST_TIMEOUT,
        f"The body took longer than {seconds:g} s to arrive. Send it again.",
        kind="TooSlow",
        headers={"Connection": "close"},
    )


def _too_large(path: str, problem: str) -> JSONResponse:
    return error_answer(
        path,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"{problem} Send less at a time.",
        kind="TooLarge",
        # What is left of the body is not read.
        headers={"Connection": "close"},
    )
