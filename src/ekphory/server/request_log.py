"""What a server says about its requests: one line of JSON each, and metrics; never content."""

from __future__ import annotations

import json
import logging
import re
import time
import tomllib
import traceback
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ekphory import __version__
from ekphory.server.errors import make_error_response
from ekphory.service.extraction import ExtractionState
from ekphory.spans import TraceSpan
from ekphory.types import now_utc

# What the layers around the application share.

Scope = MutableMapping[str, Any]
AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS = frozenset({"/health", "/api/v2/health", "/docs", "/openapi.json", "/", "/inspect"})
"""Answered without a key, and whatever the load."""
ASSETS = "/docs/"


def is_open(path: str) -> bool:
    """Whether a path is answered without a key."""
    return path in OPEN_PATHS or path.startswith((ASSETS, "/inspect/"))


def header(scope: Scope, name: bytes) -> str | None:
    """Return a request's header, or None where it has none of that name (in small letters)."""
    found = (value for key, value in scope["headers"] if key == name)
    value: bytes | None = next(found, None)
    return None if value is None else value.decode("latin-1")


def replay(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read already, and then what else is received."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> AsgiMessage:
        return waiting.pop() if waiting else await receive()

    return receive_again


def find_route(scope: Scope) -> str:
    """Return the path of the route that answered, which holds nothing of what was asked."""
    return str(getattr(scope.get("route"), "path", "unknown"))


# The log.

LOG: dict[str, Any] = tomllib.loads(files(__package__).joinpath("log.toml").read_text("utf-8"))
"""The log of a server, as `logging.config.dictConfig` reads it; it goes to standard error."""


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object; of an exception its type and places, not its text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        line: dict[str, Any] = {
            "at": now_utc().isoformat(),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = places_of(record.exc_info[1])
        return json.dumps(line)


def places_of(error: BaseException) -> dict[str, Any]:
    """Return an exception's type and where it came from; its text might hold what was stored."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return {"type": type(error).__name__, "places": places}


# The metrics.

TIMED_ROUTES = {
    "/api/v2/memories/search": "search",
    "/api/v2/inspect/search": "inspector",
    "/api/v2/memories": "add",
}
"""Routes whose times of the last hour are kept, and what they are called."""
_MINUTES = 60
_MOST_A_MINUTE = 5_000
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The measurements of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        count = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        timed = partial(Histogram, buckets=_SECONDS, registry=self.registry)
        self._requests = count(
            "ekphory_requests", "Requests answered.", ["method", "route", "status"]
        )
        self._seconds = timed(
            "ekphory_request_seconds", "Time from a request to the end of its answer.", ["route"]
        )
        self.under_way = gauge("ekphory_requests_under_way", "Requests being answered.")
        self._stages = timed(
            "ekphory_search_stage_seconds", "Time that each stage of a search took.", ["stage"]
        )
        self.added = count("ekphory_memories_added", "Messages and features remembered.")
        self._extraction = gauge(
            "ekphory_extraction_episodes",
            "Episodes from which features are to be learnt (waiting), were given up (failed), or "
            "could not be handed over (unqueued).",
            ["state"],
        )
        self._stands_still = gauge(
            "ekphory_extraction_stands_still",
            "1 while the language model cannot be used, as the process that answers knows.",
        )
        self._minutes: OrderedDict[tuple[int, str], list[float]] = OrderedDict()
        gauge("ekphory_version", "Always 1.", ["version"]).labels(__version__).set(1)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if route in TIMED_ROUTES:
            minute = int(time.time()) // 60
            taken = self._minutes.setdefault((minute, route), [])
            if len(taken) < _MOST_A_MINUTE:
                taken.append(seconds * 1000)
            while next(iter(self._minutes))[0] <= minute - _MINUTES:
                self._minutes.popitem(last=False)

    def last_hour(self) -> list[dict[str, Any]]:
        """Return half-way and slow times of the answers, a minute and route each, oldest first."""
        oldest = int(time.time()) // 60 - _MINUTES
        return [
            {
                "at": datetime.fromtimestamp(minute * 60, UTC),
                "route": TIMED_ROUTES[route],
                "answers": len(taken),
                "p50": float(np.quantile(taken, 0.5)),
                "p95": float(np.quantile(taken, 0.95)),
            }
            for (minute, route), taken in list(self._minutes.items())
            if minute > oldest
        ]

    def stage(self, name: str, milliseconds: float) -> None:
        """Note how long a stage of a search took."""
        self._stages.labels(name).observe(milliseconds / 1000)

    def extraction(self, state: ExtractionState) -> None:
        """Note how far the learning of features is."""
        for name in ("waiting", "failed", "unqueued"):
            self._extraction.labels(name).set(getattr(state, name))
        self._stands_still.set(state.out_of_order is not None)


# A line for each request.

_USABLE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_DEFECT = "This is a defect of ekphory. The log says more under request {}."
_GONE = 499
"""What is noted for a request whose sender went away; no answer was sent."""
_log = logging.getLogger("ekphory.server")


class RequestLog:
    """The outermost layer: gives each request an id, logs and measures it, and catches all."""

    def __init__(self, application: Application, *, metrics: Metrics) -> None:
        self._application = application
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        given = header(scope, b"x-request-id") or ""
        request_id = given if _USABLE_ID.fullmatch(given) else uuid.uuid4().hex
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        answer = _Watched(send, request_id)
        started = time.perf_counter()
        failure: BaseException | None = None
        under_way = self._metrics.under_way.track_inprogress()
        with under_way, TraceSpan("request", sender=header(scope, b"traceparent") or "") as span:
            try:
                await self._application(scope, receive, answer)
            except Exception as error:  # noqa: BLE001  outermost: answered, and logged without its text
                failure = error
                if answer.status is None:
                    message = _DEFECT.format(request_id)
                    defect = make_error_response(scope["path"], 500, message, kind="InternalError")
                    await defect(scope, receive, answer)
            fields = self._note(scope, answer, time.perf_counter() - started, failure)
            span.note(**{"http.request.method": fields["method"], "http.route": fields["route"]})
            span.note(**{"http.response.status_code": fields["status"]})
            if "exception" in fields:
                span.fail(fields["exception"]["type"])

    def _note(
        self, scope: Scope, answer: _Watched, seconds: float, failure: BaseException | None
    ) -> dict[str, Any]:
        route = find_route(scope)
        # A method may be any text: only those that are known become names of measurements.
        method = scope["method"] if scope["method"] in _METHODS else "other"
        status = answer.status or _GONE
        self._metrics.answered(method, route, status, seconds)
        state = scope["state"]
        caller = state.get("caller")
        fields: dict[str, Any] = {
            "request_id": state["request_id"],
            "method": method,
            "route": route,
            "status": int(status),
            "milliseconds": round(seconds * 1000, 2),
            "caller": caller.name if caller else None,
        }
        if "org" in state:
            fields["org"] = state["org"]
        failure = failure or state.get("failure")
        if failure is not None:
            fields["exception"] = places_of(failure)
        level = logging.ERROR if failure is not None else logging.INFO
        _log.log(level, "request", extra={"fields": fields})
        return fields


class _Watched:
    """Hands an answer on, adding the request's id and keeping its status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._id = request_id
        self.status: int | None = None

    async def __call__(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = (b"x-request-id", self._id.encode())
            message = {**message, "headers": [*message.get("headers", ()), own]}
        await self._send(message)
