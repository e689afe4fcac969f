"""One open shard, which answers the requests of its projects.

A replica answers for some shards with the application of `ekphory serve`, one for each shard. It
believes what the front says of the caller, and looks again whether the project that is asked for
lies in the shard. How a project is set up stands in a catalog of the shard, whose every state is an
object of its own.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from ekphory.catalog.database import NotPermitted
from ekphory.cluster.objects import Objects
from ekphory.cluster.shards import (
    LAST,
    Shards,
    hold_shard,
    make_sealed_error,
)
from ekphory.errors import StoreError
from ekphory.scope import Scope
from ekphory.server.app import create_app
from ekphory.server.auth import Caller
from ekphory.server.options import ServerOptions
from ekphory.service.handles import Place, ServiceModels
from ekphory.service.learning import ExtractionSettings
from ekphory.service.memory_service import MemoryService

_KEPT = 2
"""So many states of a catalog stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedRequest:
    """A request that was let in, as the front hands it on.

    Attributes:
        method, path, query, headers, body: As they came.
        caller: Name, org, project and rights of whoever sent it.
    """

    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    caller: tuple[str, str | None, str | None, str]


Answer = tuple[int, list[tuple[bytes, bytes]], bytes]
"""Status, headers and body."""
Events = dict[str, int]
"""What became of a shard since its last answer, and how often."""


@dataclass(frozen=True, slots=True)
class ShardCaller(Caller):
    """A caller who reaches the projects of one shard alone."""

    shards: Shards | None = None
    shard: int = -1

    def place(self, org: str, project: str, needed: Any) -> Place:  # noqa: ANN401  as `Caller`
        """Return a project to act in, and in nothing of its organisation; see `Caller.place`."""
        self._check_shard(org, project)
        return replace(Caller.place(self, org, project, needed), reach="project")

    def bind(self, scope: Scope) -> Scope:
        """Return a scope within the shard; all of an organisation for who may only read.

        Raises:
            NotPermitted: As of `Caller.bind`, or it lies in another shard.
        """
        bound = Caller.bind(self, scope)
        if bound.project is not None or self.may("write"):
            self._check_shard(bound.org, bound.project)
        return bound

    def _check_shard(self, org: str | None, project: str | None) -> None:
        if self.shards is None or self.shards.find(org, project) != self.shard:
            raise NotPermitted("The request was handed to a shard that does not hold the project.")


class ShardCatalog:
    """The catalog of one shard: a local file, whose states are numbered objects."""

    def __init__(self, objects: Objects, folder: str, path: Path) -> None:
        """Bring the newest state to a file.

        Args:
            objects: Where the states are.
            folder: Their name.
            path: The file, which is not there yet.
        """
        self.path = path
        self._objects = objects
        self._folder = folder
        self._newest = self._find_newest()
        if self._newest == LAST:
            raise make_sealed_error(folder)
        if self._newest:
            content = objects.get(self._name(self._newest))
            if content is None:
                raise StoreError(f"{folder}: changed while it was read. Repeat the request.")
            path.write_bytes(content)

    def is_newest(self) -> bool:
        """Whether no other process has written a later state."""
        return self._find_newest() == self._newest

    def publish(self, content: bytes) -> None:
        """Write the next state.

        Raises:
            StoreError: Another process has written it.
        """
        number = self._newest + 1
        if not self._objects.put_new(self._name(number), content):
            raise StoreError(f"{self._folder}: another process has changed it. Repeat the request.")
        self._newest = number
        self._objects.delete(self._name(number - _KEPT))

    def _find_newest(self) -> int:
        return max((int(name) for name in self._objects.names(self._folder)), default=0)

    def _name(self, number: int) -> str:
        return f"{self._folder}/{number:012}"


class ServedShard:
    """One open shard, which answers requests until it is closed."""

    def __init__(self, shards: Shards, shard: int, models: ServiceModels) -> None:
        """Open a shard; nobody is kept from writing it before a request writes."""
        self._shards, self._shard, self._models = shards, shard, models
        self._objects = Objects(shards.root)
        self._opened = ExitStack()
        self._lease = shards.lease(shard)
        held = hold_shard(shards, shard, models.embedder, lease=self._lease)
        self._engine = self._opened.enter_context(held)
        self._loading = asyncio.Lock()
        self._told: Counter[str] = Counter()
        self._lease.events["opened"] = 1
        self._load()

    async def answer(self, request: ForwardedRequest) -> tuple[Answer, Events]:
        """Answer one request, and tell what became of the shard."""
        async with self._loading:
            # Nobody else can have written while this process is the sole writer.
            if not self._lease.is_sole():
                await asyncio.to_thread(self._load_if_older)
        answer = await _call(self._app, self._scope(request), request.body)
        events = Counter(self._lease.events)
        since, self._told = events - self._told, events
        return answer, since

    def close(self) -> None:
        """Finish every write, and give the lease back."""
        self._opened.close()

    __del__ = close
    """Ray calls it when it takes the shard from this replica."""

    def _load_if_older(self) -> None:
        if not self._catalog.is_newest():
            self._load()

    def _load(self) -> None:
        """Open the newest catalog, and a service over it; an earlier one may still be answering."""
        folder = Path(self._opened.enter_context(tempfile.TemporaryDirectory(prefix="ekphory-")))
        name = self._shards.catalog(self._shard)
        self._catalog = ShardCatalog(self._objects, name, folder / "catalog.sqlite3")
        service = MemoryService(
            self._engine.uri,
            models=self._models,
            catalog=self._catalog.path,
            extraction=ExtractionSettings(learnt="off"),
            publish=self._publish,
        )
        self._opened.callback(service.close)
        self._app: FastAPI = create_app(service, ServerOptions(store=self._engine.uri), layers=[])

    def _publish(self, content: bytes) -> None:
        """Write the catalog's next state as the shard's writer."""
        catalog = self._catalog
        self._engine.writer.submit(lambda: catalog.publish(content)).result()

    def _scope(self, request: ForwardedRequest) -> dict[str, Any]:
        name, org, project, rights = request.caller
        caller = ShardCaller(name, org, project, rights, self._shards, self._shard)  # type: ignore[arg-type]
        return {
            "type": "http",
            # From 2.4 on an answer is sent without listening for a client that goes.
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": "http",
            "method": request.method,
            "path": request.path,
            "raw_path": request.path.encode(),
            "query_string": request.query,
            "root_path": "",
            "headers": request.headers,
            "state": {"caller": caller},
        }


async def _call(app: FastAPI, scope: dict[str, Any], body: bytes) -> Answer:
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return waiting.pop() if waiting else {"type": "http.disconnect"}

    async def send(message: Any) -> None:  # noqa: ANN401  as ASGI has it
        sent.append(message)

    await app(scope, receive, send)
    whole = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], list(sent[0].get("headers", [])), whole
