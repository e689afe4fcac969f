"""What an organisation may ask and hold."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from starlette.responses import JSONResponse

from ekphory.errors import EkphoryError
from ekphory.importers.source import parse_object
from ekphory.remote import VERBS_PATH
from ekphory.scope import DEFAULT_NAME
from ekphory.server.audit import AuditFile, HeldAnswer
from ekphory.server.auth import Caller, RateLimit
from ekphory.server.errors import RETRY, make_error_response
from ekphory.server.options import ServerOptions
from ekphory.server.request_log import Application, Receive, Scope, Send, is_open, replay
from ekphory.server.schemas.names import LONGEST_NAME, UNIVERSAL

CountMemories = Callable[[str], Awaitable[int]]
"""Counts the memories of an organisation."""

_COUNT_SECONDS = 30
"""An organisation's memories are counted anew after so long."""
_MOST_COUNTED = 10_000
_ADDING = frozenset(
    {
        "/api/v2/memories",
        "/api/v2/memories/capture",
        "/api/v2/memories/semantic/feature",
    }.union(
        f"{VERBS_PATH}{verb}"
        for verb in (
            *("add", "add_many", "add_messages", "add_exported", "capture"),
            *("learn_mistake", "add_rule", "promote"),
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
        held = HeldAnswer(send, partial(self._audit.note, scope, asked, names))
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


def _too_much(scope: Scope, org: str, problem: str, *, seconds: int) -> JSONResponse:
    # The log tells whose requests these were.
    scope["state"]["org"] = org
    message = f"Organisation {org!r} {problem}. Try again in {seconds} s."
    retry = {"Retry-After": str(seconds)}
    return make_error_response(scope["path"], 429, message, kind="Too Many Requests", headers=retry)
