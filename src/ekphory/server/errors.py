"""Errors as answers: one table of statuses, and the shapes that each kind of client reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from ekphory.catalog.database import AlreadyThere, NotPermitted, NotThere
from ekphory.errors import EkphoryError, InvalidInput, MemoryNotFound
from ekphory.remote import VERBS_PATH
from ekphory.service.handles import NotConfigured


class TooLarge(EkphoryError):
    """A request asks for more at a time than is allowed."""


STATUSES: tuple[tuple[type[EkphoryError], HTTPStatus], ...] = (
    (NotThere, HTTPStatus.NOT_FOUND),
    (MemoryNotFound, HTTPStatus.NOT_FOUND),
    (AlreadyThere, HTTPStatus.CONFLICT),
    (NotPermitted, HTTPStatus.FORBIDDEN),
    (InvalidInput, HTTPStatus.UNPROCESSABLE_ENTITY),
    (TooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (EkphoryError, HTTPStatus.SERVICE_UNAVAILABLE),
)
"""The first class that an error belongs to says how it is answered."""

RETRY = {"Retry-After": "1"}
_SHOWN_ERRORS = 5
_MOST_TEXT = 750
"""Bytes of a message: it may echo what was sent, but never much of it."""
_MOST_REPEATED = 100
"""Bytes of it where an answer has it a second time."""
_MOST_PART, _MOST_MESSAGE = 150, 300
"""Characters of the place of an error, and bytes of what is wrong there."""
_JSON = re.compile(r"application/([\w.-]+\+)?json\b", re.IGNORECASE)
_PYDANTICS_OWN = "Value error, "
_OUT_OF_ORDER = "The server cannot do this at the moment. Its log says why, under the request's id."
_NO_SUCH_PATH = (
    "There is nothing at this path. /inspect shows the memories, /docs lists what can be asked."
)
_OPENAI_PATHS = ("/v1/embeddings", "/v1/models")
_COHERE_ENDINGS = ("/rerank", "/v2/embed")
# MemMachine answers these with a text alone.
_PLAIN_PATHS = frozenset(
    f"/api/v2/{path}"
    for path in (
        *("projects/get", "memories/semantic/feature/get", "memories/semantic/category/get"),
        *("memory/episodic/config/get", "memory/episodic/short_term/config/get"),
        "memory/episodic/long_term/config/get",
    )
)


def make_error_response(
    path: str, status: int, message: str, *, kind: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return an error in the shape that the clients of a path read.

    Args:
        path: What was asked.
        status: The HTTP status.
        message: What is wrong, and what to do instead.
        kind: Name of the error.
        headers: Further headers.
    """
    return JSONResponse(_body(path, status, _clipped(message), kind), status, dict(headers or {}))


def describe_verb_error(error: EkphoryError, status: int) -> dict[str, Any]:
    """Return what `Memory` on a server makes the same error of: its fields as well."""
    fields = vars(error) if isinstance(error, InvalidInput | MemoryNotFound) else {}
    detail = _body("", status, _clipped(str(error)), type(error).__name__)["detail"]
    return {"detail": {**detail, "fields": fields}}


def _clipped(message: str, most: int = _MOST_TEXT) -> str:
    text = message.encode("utf-8", "replace")
    return message if len(text) <= most else f"{text[:most].decode('utf-8', 'ignore')}…"


def add_error_handlers(app: FastAPI) -> None:
    """Let every error of the application become an answer."""
    app.add_exception_handler(EkphoryError, _of_ekphory)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)


def _body(path: str, status: int, message: str, kind: str) -> dict[str, Any]:
    described = {"message": message, "type": kind, "param": None, "code": status}
    if path in _OPENAI_PATHS:
        return {"error": described}
    if path.endswith(_COHERE_ENDINGS):
        repeated = _clipped(message, _MOST_REPEATED)
        return {"message": message, "error": {**described, "message": repeated}}
    if path in _PLAIN_PATHS and status == HTTPStatus.NOT_FOUND:
        return {"detail": message}
    repeated = _clipped(message, _MOST_REPEATED)
    detail = {"code": status, "message": message, "internal_error": repeated}
    return {"detail": {**detail, "exception": kind, "trace": ""}}


async def _of_ekphory(request: Request, error: Exception) -> JSONResponse:
    status = next(status for kind, status in STATUSES if isinstance(error, kind))
    message = str(error)
    if status == HTTPStatus.SERVICE_UNAVAILABLE and not isinstance(error, NotConfigured):
        # What went wrong may name paths and addresses, which are not the caller's business.
        request.state.failure = error
        message = _OUT_OF_ORDER
    elif request.url.path.startswith(VERBS_PATH) and isinstance(error, EkphoryError):
        return JSONResponse(describe_verb_error(error, status), status)
    headers = RETRY if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    kind = type(error).__name__
    return make_error_response(request.url.path, status, message, kind=kind, headers=headers)


async def _of_validation(request: Request, error: Exception) -> JSONResponse:
    found = error.errors() if isinstance(error, RequestValidationError) else ()
    path, kind = request.url.path, "RequestValidationError"
    message = _tell_type(request, found) or _in_words(found)
    return make_error_response(path, HTTPStatus.UNPROCESSABLE_ENTITY, message, kind=kind)


def _tell_type(request: Request, found: Sequence[Mapping[str, Any]]) -> str | None:
    """Return what to do about a body that was not read, since it did not come as JSON."""
    kind = request.headers.get("content-type", "")
    of_body = any(each.get("loc") == ("body",) for each in found)
    if not of_body or _JSON.match(kind):
        return None
    came = f"came as {kind[:_MOST_PART]}" if kind else "has no Content-Type"
    return f"The body {came}. Send JSON, with the header Content-Type: application/json"


async def _of_http(request: Request, error: Exception) -> JSONResponse:
    status = getattr(error, "status_code", HTTPStatus.BAD_REQUEST)
    if status == HTTPStatus.BAD_REQUEST:
        # A body that no parser can read is a bad payload like any other.
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    kind, headers = HTTPStatus(status).phrase, getattr(error, "headers", None)
    message = str(getattr(error, "detail", kind))
    if status == HTTPStatus.NOT_FOUND and message == kind:
        message = _NO_SUCH_PATH
    return make_error_response(request.url.path, status, message, kind=kind, headers=headers)


def _in_words(found: Sequence[Mapping[str, Any]]) -> str:
    parts = [_one_in_words(each) for each in found[:_SHOWN_ERRORS]]
    if len(found) > _SHOWN_ERRORS:
        parts.append(f"and {len(found) - _SHOWN_ERRORS:,} more")
    if len(parts) > 1:
        return "Invalid request payload:\n- " + "\n- ".join(parts)
    return f"Invalid request payload: {parts[0]}" if parts else "Invalid request payload"


def _one_in_words(found: Mapping[str, Any]) -> str:
    if found.get("type") == "json_invalid":
        return f"the body is not JSON: {found['ctx']['error']}, at character {found['loc'][-1]}"
    place = ".".join(str(part)[:_MOST_PART] for part in found.get("loc", ()) if part != "body")
    message = str(found.get("msg", "Invalid value")).removeprefix(_PYDANTICS_OWN)
    message = _clipped(message, _MOST_MESSAGE)
    return f"{place}: {message}" if place else message
