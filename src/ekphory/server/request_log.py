"""One line of JSON for each request: when, what, how long; never what was said in it."""

from __future__ import annotations

import logging
import re
import time
import uuid
from http import HTTPStatus
from typing import Any

from ekphory.server.asgi import Application, AsgiMessage, Receive, Scope, Send, header
from ekphory.server.errors import error_answer
from ekphory.server.json_lines import places_of
from ekphory.server.metrics import Metrics

REQUEST_ID = "X-Request-ID"
_USABLE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_UNKNOWN_ROUTE = "unknown"
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
        with self._metrics.under_way.track_inprogress():
            try:
                await self._application(scope, receive, answer)
            except Exception as error:  # noqa: BLE001  outermost: answered, and logged without its text
                failure = error
                if answer.status is None:
                    await _defect(scope["path"], request_id)(scope, receive, answer)
        self._note(scope, answer, time.perf_counter() - started, failure)

    def _note(
        self, scope: Scope, answer: _Watched, seconds: float, failure: BaseException | None
    ) -> None:
        route = getattr(scope.get("route"), "path", _UNKNOWN_ROUTE)
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
        failure = failure or state.get("failure")
        if failure is not None:
            fields["exception"] = places_of(failure)
        level = logging.ERROR if failure is not None else logging.INFO
        _log.log(level, "request", extra={"fields": fields})


class _Watched:
    """Hands an answer on, adding the request's id and keeping its status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._id = request_id
        self.status: int | None = None

    async def __call__(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = (REQUEST_ID.lower().encode(), self._id.encode())
            message = {**message, "headers": [*message.get("headers", ()), own]}
        await self._send(message)


def _defect(path: str, request_id: str) -> Application:
    return error_answer(
        path,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        f"This is a defect of ekphory. The log says more under request {request_id}.",
        kind="InternalError",
    )
