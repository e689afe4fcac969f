"""How much is taken: the size, shape and pace of a body, and the number of requests at once."""

from __future__ import annotations

import asyncio
import json
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any

import anyio
import uvicorn
from anyio.lowlevel import checkpoint
from fastapi.responses import JSONResponse
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ekphory.catalog.access_keys import AccessKeys
from ekphory.server import request_log
from ekphory.server.audit import AuditFile
from ekphory.server.auth import Caller, Gate
from ekphory.server.errors import RETRY, make_error_response
from ekphory.server.options import Limits, ServerOptions
from ekphory.server.routes.verbs import WRITING_PATHS
from ekphory.server.tenants import CountMemories, Tenants

# What a window holds is looked at without a pause: so much takes some milliseconds.
WINDOW_BYTES = 256 * 1024
_BRACKETS = b"[]{}"
_NO_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
_LONE_HALF = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
    rb"|\xed[\xa0-\xbf]"
)
_PAIR_BYTES = 12
"""The length of a surrogate pair as JSON escapes it."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """How a refusal is answered; the message may name limits."""

    status: HTTPStatus
    kind: str
    message: str
    headers: Mapping[str, str]


_AS_IT_IS = (None, "", "identity")
"""Values of Content-Encoding under which a body is read."""
# What may be left of the body is not read.
_CLOSING = {"Connection": "close"}


def _too_large(problem: str) -> _Answer:
    message = f"{problem} Send less at a time."
    return _Answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "TooLarge", message, _CLOSING)


class Refusal(Enum):
    """Why a request is not handed on, and what it is answered."""

    MANY_VALUES = _too_large("The body holds more than {0.values:,} values.")
    DEEP = _too_large("The body is nested deeper than {0.depth:,}.")
    TOO_LARGE = _too_large("The body is larger than {0.body_bytes:,} bytes.")
    NOT_UTF8 = _Answer(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "InvalidInput",
        "The body is not UTF-8. Send JSON as UTF-8.",
        {},
    )
    COMPRESSED = _Answer(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "InvalidInput",
        "The body is compressed, as its Content-Encoding says. Send it as it is.",
        _CLOSING,
    )
    HALF_CHARACTER = _Answer(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "InvalidInput",
        "A text holds half of a surrogate pair, which UTF-8 cannot carry. Remove it.",
        {},
    )
    TOO_SLOW = _Answer(
        HTTPStatus.REQUEST_TIMEOUT,
        "TooSlow",
        "The body took longer than {0.body_seconds:g} s to arrive. Send it again.",
        _CLOSING,
    )
    BUSY = _Answer(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Overloaded",
        "Too many requests are under way. Try again in a moment.",
        RETRY | _CLOSING,
    )


class BodyScan:
    """Counts the values of a JSON body and finds halves of surrogate pairs, piece by piece.

    JSON can write half of a surrogate pair, but no store and no answer can carry one. What is no
    JSON at all is not noticed: that is told where it is parsed.

    Args:
        most_values: Elements of lists and objects that a body may hold.
        most_depth: How deep lists and objects may be nested.
    """

    def __init__(self, *, most_values: int, most_depth: int) -> None:
        self._most_values = most_values
        self._most_depth = most_depth
        self._values = 0
        self._brackets = 0
        self._depth = 0
        self._in_text = False
        self._backslash = b""
        self._tail = b""

    def feed(self, piece: bytes) -> Refusal | None:
        """Look at the next piece, of any length; return what is wrong with the body."""
        whole = self._backslash + piece
        # An escape is never looked at without the character that it escapes.
        trailing = len(whole) - len(whole.rstrip(b"\\"))
        self._backslash = b"\\" if trailing % 2 else b""
        clean = whole[: len(whole) - len(self._backslash)].replace(b"\\\\", b"")
        return self._counted(clean.replace(b'\\"', b"")) or self._halves(clean, last=False)

    def end(self) -> Refusal | None:
        """Look at what is left; return what is wrong with it."""
        return self._halves(b"", last=True)

    def _counted(self, clean: bytes) -> Refusal | None:
        parts = clean.split(b'"')
        outside = b"".join(parts[1 if self._in_text else 0 :: 2])
        self._in_text ^= len(parts) % 2 == 0
        brackets = outside.translate(None, delete=_NO_BRACKETS)
        self._values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        self._brackets += len(brackets)
        if self._values > self._most_values or self._brackets > 2 * self._most_values:
            return Refusal.MANY_VALUES
        for bracket in brackets:
            self._depth += 1 if bracket in b"[{" else -1
            if self._depth > self._most_depth:
                return Refusal.DEEP
        return None

    def _halves(self, clean: bytes, *, last: bool) -> Refusal | None:
        text = self._tail + clean
        # Before the end a pair may still be on its way; what was looked at only lends its context.
        until = len(text) if last else max(0, len(text) - _PAIR_BYTES)
        found = _LONE_HALF.search(text, max(0, len(self._tail) - _PAIR_BYTES))
        self._tail = text[-2 * _PAIR_BYTES :]
        return Refusal.HALF_CHARACTER if found and found.start() < until else None


def _as_utf8(body: bytes) -> bytes | Refusal:
    """Return a body without the mark that some clients put before UTF-8.

    Other encodings are refused: what looks at bodies on their way reads UTF-8 alone.
    """
    if json.detect_encoding(body).startswith(("utf-16", "utf-32")):
        return Refusal.NOT_UTF8
    try:
        body.decode()
    except UnicodeDecodeError:
        return Refusal.NOT_UTF8
    return body.removeprefix(BOM_UTF8)


# The number of requests under way, and what is refused.

_WRITES = WRITING_PATHS.union(
    {
        "/api/v2/memories",
        "/api/v2/memories/capture",
        "/api/v2/memories/episodic/delete",
        "/api/v2/memories/semantic/delete",
        "/api/v2/memories/supersede",
        "/api/v2/memories/unsupersede",
        "/api/v2/projects/delete",
        "/api/v2/memories/semantic/feature",
        "/api/v2/memories/semantic/feature/update",
    }
)


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

    def __init__(self, application: request_log.Application, *, limits: Limits) -> None:
        self._application = application
        self._limits = limits
        self._arriving = _slots(limits)
        self._reads = _Queue(_slots(limits), anyio.CapacityLimiter(limits.threads))
        self._writes = _Queue(_slots(limits), anyio.CapacityLimiter(limits.write_threads))

    async def __call__(
        self, scope: request_log.Scope, receive: request_log.Receive, send: request_log.Send
    ) -> None:
        """Answer one request."""
        if scope["type"] != "http" or request_log.is_open(scope["path"]):
            await self._application(scope, receive, send)
            return
        caller = _caller_name(scope)
        queue = self._writes if is_write(scope) else self._reads
        body: bytes | Refusal | None = Refusal.BUSY
        if not (self._arriving.is_full(caller) or queue.slots.is_full(caller)):
            with self._arriving.taken_by(caller):
                body = await self._body(scope, receive)
            if isinstance(body, bytes) and queue.slots.is_full(caller):
                body = Refusal.BUSY
        if body is None:
            # Nobody is left to be answered, and a part of a request must not be acted on.
            return
        if not isinstance(body, bytes):
            await self._refusal(scope["path"], body)(scope, receive, send)
        else:
            with queue.slots.taken_by(caller):
                async with queue.threads:
                    await self._application(scope, request_log.replay(body, receive), send)

    async def _body(
        self, scope: request_log.Scope, receive: request_log.Receive
    ) -> bytes | Refusal | None:
        announced = request_log.header(scope, b"content-length") or "0"
        if announced.isdecimal() and int(announced[:20]) > self._limits.body_bytes:
            return Refusal.TOO_LARGE
        if request_log.header(scope, b"content-encoding") not in _AS_IT_IS:
            return Refusal.COMPRESSED
        with anyio.move_on_after(self._limits.body_seconds):
            return await self._read(receive)
        return Refusal.TOO_SLOW

    async def _read(self, receive: request_log.Receive) -> bytes | Refusal | None:
        """Read a body, looking at each part as it comes; None where its sender went away."""
        parts = bytearray()
        scan = BodyScan(most_values=self._limits.values, most_depth=self._limits.depth)
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            piece: bytes = message.get("body", b"")
            if len(parts) + len(piece) > self._limits.body_bytes:
                return Refusal.TOO_LARGE
            parts += piece
            for start in range(0, len(piece), WINDOW_BYTES):
                trouble = scan.feed(piece[start : start + WINDOW_BYTES])
                if trouble is not None:
                    return trouble
                await checkpoint()
            if not message.get("more_body", False):
                return scan.end() or _as_utf8(bytes(parts))

    def _refusal(self, path: str, why: Refusal) -> JSONResponse:
        refused = why.value
        message = refused.message.format(self._limits)
        return make_error_response(
            path, refused.status, message, kind=refused.kind, headers=refused.headers
        )


_SHOWN_HEADERS = ("Retry-After", "X-Export-Report", "X-Request-ID", "X-Trace-ID")
"""What pages of other hosts may read of an answer's headers."""
METHODS = ("GET", "POST", "PUT", "DELETE")
"""What the paths of REST take."""


def guard(
    keys: AccessKeys,
    options: ServerOptions,
    metrics: request_log.Metrics,
    *,
    methods: Sequence[str] = METHODS,
    count: CountMemories | None = None,
) -> list[Middleware]:
    """Return the layers that log, let in and limit, the outermost first.

    Args:
        keys: Those of the catalog.
        options: Who may come in, and how much at a time.
        metrics: What requests are counted in.
        methods: What pages of other hosts may use.
        count: Counts what an organisation holds; None where requests name none.
    """
    layers = [
        Middleware(request_log.RequestLog, metrics=metrics),
        Middleware(Gate, keys=keys, options=options),
        Middleware(LoadLimit, limits=options.limits),
    ]
    if count is not None and options.watches_tenants:
        audit = None if options.audit is None else AuditFile(options.audit)
        layers.append(Middleware(Tenants, options=options, count=count, audit=audit))
    if options.origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=options.origins,
            allow_methods=methods,
            allow_headers=["*"],
            expose_headers=_SHOWN_HEADERS,
        )
        layers.insert(1, cors)
    return layers


def is_write(scope: request_log.Scope) -> bool:
    """Whether a request changes memories, and so waits until the change is durable."""
    return scope["method"] == "POST" and scope["path"] in _WRITES


def _slots(limits: Limits) -> Slots:
    return Slots(most=limits.concurrency, most_of_one=limits.concurrency_of_one_caller)


def _caller_name(scope: request_log.Scope) -> str:
    caller = scope.get("state", {}).get("caller")
    return caller.name if isinstance(caller, Caller) else ""


# Connections that say nothing are closed.


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
