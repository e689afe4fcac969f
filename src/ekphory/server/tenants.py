"""What an organisation may ask and hold, and the audit log: who read, wrote and forgot what."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from filelock import FileLock
from starlette.responses import JSONResponse

from ekphory.errors import EkphoryError, InvalidInput
from ekphory.importers.source import parse_object
from ekphory.remote import VERBS_PATH
from ekphory.scope import DEFAULT_NAME
from ekphory.server.auth import Caller, RateLimit
from ekphory.server.errors import RETRY, make_error_response
from ekphory.server.options import ServerOptions
from ekphory.server.request_log import (
    Application,
    AsgiMessage,
    JsonLines,
    Receive,
    Scope,
    Send,
    find_route,
    is_open,
    replay,
)
from ekphory.server.schemas.names import LONGEST_NAME, UNIVERSAL

CountMemories = Callable[[str], Awaitable[int]]
"""Counts the memories of an organisation."""

_COUNT_SECONDS = 30
"""An organisation's memories are counted anew after so long."""
_MOST_COUNTED = 10_000
_ADDING = frozenset(
    {"/api/v2/memories", "/api/v2/memories/semantic/feature"}.union(
        f"{VERBS_PATH}{verb}"
        for verb in (
            *("add", "add_many", "add_messages", "add_exported", "capture"),
            *("learn_mistake", "add_rule"),
        )
    )
)


def find_project(path: str, asked: Mapping[str, Any], caller: Caller) -> tuple[str, str]:
    """Return the organisation and project that a request names; where it names none, the key's own.

    What is not a name is empty, as is what a verb of `Memory` leaves unbound.
    """
    if path.startswith(VERBS_PATH):
        scope = asked.get("scope")
        named = scope if isinstance(scope, dict) else {}
        found = named.get("org") or caller.org, named.get("project") or caller.project
    else:
        found = (
            asked.get("org_id", caller.org or UNIVERSAL),
            asked.get("project_id", caller.project or UNIVERSAL),
        )
    org, project = (
        name if isinstance(name, str) and len(name) <= LONGEST_NAME else "" for name in found
    )
    return org, project


class Tenants:
    """Refuses what goes beyond an organisation's share, and notes all that is answered.

    It stands behind the layer that reads bodies, which hands each on whole.
    """

    def __init__(
        self,
        application: Application,
        *,
        options: ServerOptions,
        count: CountMemories,
        audit: AuditFile | None,
    ) -> None:
        self._application = application
        self._limits = options.limits
        self._rates = RateLimit(options.limits.org_per_second)
        self._count = count
        self._counted: dict[str, tuple[float, int]] = {}
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or is_open(scope["path"]):
            await self._application(scope, receive, send)
            return
        body: bytes = (await receive()).get("body", b"")
        asked = parse_object(body) or {}
        caller: Caller = scope["state"]["caller"]
        names = find_project(scope["path"], asked, caller)
        # A key pays for its own organisation, whichever one it names.
        answer = await self._refuse(scope, caller.org or names[0] or DEFAULT_NAME)
        application = self._application if answer is None else answer
        if self._audit is None:
            await application(scope, replay(body, receive), send)
            return
        held = _HeldAnswer(send, partial(self._note, self._audit, scope, asked, names))
        await application(scope, replay(body, receive), held)
        try:
            await held.release()
        except OSError as error:
            scope["state"]["failure"] = error
            message = "The audit log cannot be written. What was to be stored may be there."
            refusal = make_error_response(scope["path"], 503, message, kind="Unaudited")
            await refusal(scope, receive, send)

    async def _refuse(self, scope: Scope, org: str) -> JSONResponse | None:
        path, most = scope["path"], self._limits.org_memories
        wait = self._rates.wait_for(org)
        if wait > 0:
            problem = f"asks more than {self._limits.org_per_second:g} times a second"
            return _too_much(scope, org, problem, seconds=max(1, math.ceil(wait)))
        if most is None or path not in _ADDING:
            return None
        try:
            held = await self._held(org)
        except EkphoryError as error:
            scope["state"]["failure"] = error
            message = "It is not known how many memories the organisation holds."
            return make_error_response(path, 503, message, kind="Uncounted", headers=RETRY)
        if held < most:
            return None
        problem = f"holds {held:,} memories and may hold {most:,}: forget some of them"
        return _too_much(scope, org, problem, seconds=_COUNT_SECONDS)

    async def _held(self, org: str) -> int:
        at, held = self._counted.get(org, (-math.inf, 0))
        if time.monotonic() - at > _COUNT_SECONDS:
            held = await self._count(org)
            if len(self._counted) >= _MOST_COUNTED:
                self._counted.clear()
            self._counted[org] = time.monotonic(), held
        return held

    def _note(
        self,
        audit: AuditFile,
        scope: Scope,
        asked: Mapping[str, Any],
        names: tuple[str, str],
        status: int,
        content: bytes,
    ) -> None:
        org, project = names
        ids = list(dict.fromkeys([*_find_ids(asked), *_find_ids(parse_object(content))]))
        query = _find_query(asked)
        audit.write(
            {
                "request_id": scope["state"]["request_id"],
                "key": scope["state"]["caller"].name,
                "org": org or None,
                "project": project or None,
                "verb": f"{scope['method']} {find_route(scope)}",
                "status": status,
                "query": None if query is None else _digest(query),
                "ids": [_digest(each) for each in ids],
                "count": len(ids),
            }
        )


def _too_much(scope: Scope, org: str, problem: str, *, seconds: int) -> JSONResponse:
    # The log tells whose requests these were.
    scope["state"]["org"] = org
    return make_error_response(
        scope["path"],
        429,
        f"Organisation {org!r} {problem}. Try again in {seconds} s.",
        kind="Too Many Requests",
        headers={"Retry-After": str(seconds)},
    )


# The audit log.

_FILE_BYTES, _FILES = 64 * 2**20, 16
"""The file and so many earlier ones, of this size, stay."""
_IDS = frozenset(
    {"id", "ids", "uid", "uids", "old", "by", "feature_id"}.union(
        f"{kind}_id{plural}" for kind in ("episodic", "semantic") for plural in ("", "s")
    )
)
"""Fields of requests and answers that hold ids of memories."""
_STREAMED = b"application/x-ndjson"


class AuditFile(RotatingFileHandler):
    """Lines of JSON in a file that is followed by another when it is full.

    Several processes may write it.
    """

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            InvalidInput: It cannot be written.
        """
        try:
            super().__init__(path, maxBytes=_FILE_BYTES, backupCount=_FILES, encoding="utf-8")
        except OSError as error:
            problem = f"cannot be written ({error.strerror})"
            raise InvalidInput("audit", str(path), problem, "Name a file in a folder") from error
        self.close()
        self.setFormatter(JsonLines())
        self._turn = FileLock(f"{path}.lock")

    def write(self, fields: Mapping[str, Any]) -> None:
        """Write a line.

        Raises:
            OSError: It was not written.
        """
        line = {"levelname": "INFO", "msg": "audit", "fields": fields}
        self.handle(logging.makeLogRecord(line))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line at the end of the newest file, which another process may have begun."""
        with self._turn:
            try:
                super().emit(record)
            finally:
                self.close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802  logging's name
        """Raise what went wrong."""
        raise

    def _open(self) -> Any:  # noqa: ANN401  as logging has it
        return open(self.baseFilename, "a", encoding="utf-8", opener=_open_for_owner)


def _open_for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class _HeldAnswer:
    """Keeps an answer until it is noted; of one that comes in pieces, nothing but its status."""

    def __init__(self, send: Send, note: Callable[[int, bytes], None]) -> None:
        self._send, self._note = send, note
        self._held: list[AsgiMessage] = []
        self._streams = False

    async def __call__(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            kind = dict(message.get("headers", ())).get(b"content-type", b"")
            self._streams = kind.startswith(_STREAMED)
            if self._streams:
                self._note(message["status"], b"")
        if self._streams:
            await self._send(message)
        else:
            self._held.append(message)

    async def release(self) -> None:
        """Note the answer, and send it."""
        if self._held:
            content = b"".join(message.get("body", b"") for message in self._held)
            self._note(self._held[0]["status"], content)
        for message in self._held:
            await self._send(message)


def _find_ids(value: object) -> Iterator[str]:
    """Yield the ids in a value of JSON."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in _IDS:
                yield from _find_ids(inner)
            else:
                several = inner if isinstance(inner, list) else [inner]
                yield from (each for each in several if isinstance(each, str) and each)
    elif isinstance(value, list):
        for inner in value:
            yield from _find_ids(inner)


def _find_query(asked: Mapping[str, Any]) -> str | None:
    arguments = asked.get("arguments")
    inner = arguments if isinstance(arguments, dict) else {}
    found = asked.get("query", inner.get("query"))
    return found if isinstance(found, str) else None


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
