"""Authentication: where the key of every request is checked, and how often it comes."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import get_args
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException

from ekphory.catalog.access_keys import AccessKeys, Rights
from ekphory.catalog.database import NotPermitted
from ekphory.legacy import KEY_PREFIXES
from ekphory.scope import Scope as MemoryScope
from ekphory.server.errors import make_error_response
from ekphory.server.options import ServerOptions, is_loopback
from ekphory.server.request_log import Application, Receive, Scope, Send, header, is_open
from ekphory.server.schemas.names import InProject
from ekphory.service.handles import Place

_ELSEWHERE = "The key is bound to another organisation or project."
_ORDER: tuple[Rights, ...] = get_args(Rights)


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request.

    Attributes:
        name: The id of their key, or an address; for logs and rate limits.
        org, project: What their key is bound to; None for any.
        rights: What they may do.
    """

    name: str
    org: str | None = None
    project: str | None = None
    rights: Rights = "admin"

    def may(self, needed: Rights) -> bool:
        """Whether this much is allowed anywhere at all."""
        return _ORDER.index(self.rights) >= _ORDER.index(needed)

    def check_rights(self, needed: Rights) -> None:
        """Check that this much is allowed anywhere at all.

        Raises:
            NotPermitted: It is not.
        """
        if not self.may(needed):
            raise NotPermitted(
                f"This needs a key with the right to {needed}; this one may {self.rights}."
            )

    def check_unbound(self) -> None:
        """Check that the key reaches all projects, for what is about all of them.

        Raises:
            NotPermitted: It is bound.
        """
        if self.org is not None:
            raise NotPermitted(
                "This concerns all projects, and the key is bound to one organisation or project. "
                "Use a key that is bound to nothing."
            )

    def may_see(self, org: str, project: str) -> bool:
        """Whether a project is within what the key is bound to."""
        return self.org in (None, org) and self.project in (None, project)

    def place(self, org: str, project: str, needed: Rights) -> Place:
        """Return a project to act in.

        Raises:
            NotPermitted: The key does not reach there, or not for this.
        """
        self.check_rights(needed)
        if not self.may_see(org, project):
            raise NotPermitted(_ELSEWHERE)
        return Place(org, project, "org" if self.project is None else "project")

    def bind(self, scope: MemoryScope) -> MemoryScope:
        """Return a scope, narrowed to what the key is bound to.

        Raises:
            NotPermitted: The scope lies outside.
        """
        own = {"org": self.org, "project": self.project}
        bound = {name: value for name, value in own.items() if value is not None}
        if any(getattr(scope, name) not in (None, value) for name, value in bound.items()):
            raise NotPermitted(_ELSEWHERE)
        return replace(scope, **bound)

    def place_of(self, request: InProject, needed: Rights) -> Place:
        """Return the project that a request names; where it names none, the key's own.

        Raises:
            NotPermitted: The key does not reach there, or not for this.
        """
        given = request.model_fields_set
        org = request.org_id if "org_id" in given else self.org or request.org_id
        project = request.project_id if "project_id" in given else self.project
        return self.place(org, project or request.project_id, needed)


# The gate.

_SCHEMES = ("bearer", "token")
_CHALLENGE = {"WWW-Authenticate": "Bearer"}
_GIVEN = "given-key"
"""Who calls with the key that the server was started with, in logs and rate limits."""
_MOST_CALLERS = 10_000
_BURST_SECONDS = 5.0
"""A caller that was quiet may come with so many seconds' worth of requests at once."""


class Gate:
    """Lets a request through with its caller, or answers why not."""

    def __init__(
        self, application: Application, *, keys: AccessKeys, options: ServerOptions
    ) -> None:
        self._application = application
        self._keys = keys
        self._options = options
        self._rates = RateLimit(options.limits.per_second)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or is_open(scope["path"]):
            await self._application(scope, receive, send)
            return
        try:
            caller = self._find_caller(scope)
            scope.setdefault("state", {})["caller"] = caller
            self._check_rate(caller)
        except HTTPException as refusal:
            status = HTTPStatus(refusal.status_code)
            answer = make_error_response(
                scope["path"], status, refusal.detail, kind=status.phrase, headers=refusal.headers
            )
            await answer(scope, receive, send)
        else:
            await self._application(scope, receive, send)

    def _find_caller(self, scope: Scope) -> Caller:
        text = _key_text(scope)
        if self._options.key is not None and self._options.key.is_same(text):
            return Caller(_GIVEN)
        if text.startswith(KEY_PREFIXES):
            key = self._keys.recognise(text)
            if key is None:
                raise HTTPException(401, "This key is not known or revoked.", _CHALLENGE)
            return Caller(key.id, key.org, key.project, key.rights)
        if self._options.needs_key:
            raise HTTPException(401, "This needs a key: Authorization: Bearer ek_… .", _CHALLENGE)
        if not self._is_local_page(scope):
            raise HTTPException(403, "Without a key only this machine itself may ask.")
        client = scope.get("client")
        return Caller(client[0] if client else "local")

    def _check_rate(self, caller: Caller) -> None:
        wait = self._rates.wait_for(caller.name)
        if wait > 0:
            seconds = str(max(1, math.ceil(wait)))
            message = f"Too many requests. Try again in {seconds} s."
            raise HTTPException(429, message, {"Retry-After": seconds})

    def _is_local_page(self, scope: Scope) -> bool:
        """Whether no foreign web page asks, also none that was rebound to this machine by DNS."""
        origin = header(scope, b"origin")
        if origin is not None and origin not in self._options.origins:
            return is_loopback(_host_of(origin))
        host = header(scope, b"host")
        return host is None or is_loopback(_without_port(host))


class RateLimit:
    """Counts each caller's requests; a bucket that fills steadily and is emptied by requests."""

    def __init__(
        self, per_second: float | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_for(self, caller: str) -> float:
        """Take one request from a caller's bucket; seconds to wait where it is empty, else 0."""
        if self._per_second is None:
            return 0
        now, most = self._clock(), max(1.0, self._per_second * _BURST_SECONDS)
        left, at = self._buckets.pop(caller, (most, now))
        left = min(most, left + (now - at) * self._per_second)
        allowed = left >= 1
        self._buckets[caller] = (left - 1 if allowed else left, now)
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        return 0 if allowed else (1 - left) / self._per_second


def _key_text(scope: Scope) -> str:
    scheme, _, key = (header(scope, b"authorization") or "").partition(" ")
    return key.strip() if scheme.lower() in _SCHEMES else ""


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""


def _without_port(host: str) -> str:
    return host.partition("]")[0] if host.startswith("[") else host.partition(":")[0]
