"""One open shard, which answers the requests of its projects; and all of them, to be read as one.

A replica answers for some shards with the application of `ekphory serve`, one for each shard. It
believes what the front says of the caller, and looks again whether the project that is asked for
lies in the shard. How a project is set up stands in a catalog of the shard, whose every state is an
object of its own.

What no project is named for is read from all shards as from one store: within what the caller's key
reaches, as everywhere.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from fastapi import FastAPI

from ekphory.catalog.access_keys import Rights
from ekphory.catalog.database import NotPermitted
from ekphory.cluster.objects import Objects
from ekphory.cluster.shards import (
    LAST,
    Shards,
    hold_all,
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
from ekphory.service.memory_service import ClusterPart, MemoryService

_LEARNING_NOTHING = ExtractionSettings(learnt="off")
_KEPT = 2
"""So many states of a catalog stay."""
_START_AGAIN = "on all machines and start the cluster again"
_REMEDIES = {
    **dict.fromkeys(
        ("embedder", "embedding_model"), "Run `ekphory cluster reembed`, while nobody serves it"
    ),
    "reranker": f"Set EKPHORY_RERANKER {_START_AGAIN}",
    "llm_model": f"Set EKPHORY_CHAT_URL and EKPHORY_CHAT_MODEL {_START_AGAIN}",
    "": "Leave it as it is, or use `ekphory serve` on one machine, which can change it",
}
"""What to do instead of changing a key for all projects, which lie in many shards."""


# The id of a trace begins with the number of the shard that keeps it.

_TRACE_DIGITS = 4
_TRACE = re.compile(rf"([0-9a-f]{{{_TRACE_DIGITS}}})[0-9a-f]+")


def find_traced_shard(trace_id: str, shards: Shards) -> int | None:
    """Return the number of the shard that keeps a trace; None where no shard could."""
    found = _TRACE.fullmatch(trace_id)
    shard = -1 if found is None else int(found[1], 16)
    return shard if 0 <= shard < shards.count else None


Reach = Literal["project", "shard"]
"""Whether a write is about one project, or about all in a shard that its caller reaches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedRequest:
    """A request that was let in, as the front hands it on.

    Attributes:
        method, path, query, headers, body: As they came.
        caller: Name, org, project and rights of whoever sent it.
        reach: What a write is about that names no project.
    """

    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    caller: tuple[str, str | None, str | None, Rights]
    reach: Reach = "project"


Answer = tuple[int, list[tuple[bytes, bytes]], bytes]
"""Status, headers and body."""
Events = dict[str, int]
"""What became of a shard since its last answer, and how often."""


class ServedPart(Protocol):
    """A part of a cluster that answers requests until it is closed."""

    async def answer(self, request: ForwardedRequest) -> tuple[Answer, Events]:
        """Answer one request, and tell what became of the part."""

    def close(self) -> None:
        """Finish every write, and let the part go."""


WHOLE = -1
"""In the place of a shard's number: all shards together, only to be read."""
_WHOLE_NAME = "all-shards"


def name_part(shards: Shards, part: int) -> str:
    """Return what a shard, or `WHOLE`, is called."""
    return _WHOLE_NAME if part == WHOLE else shards.name(part)


def open_part(shards: Shards, name: str, models: ServiceModels) -> ServedPart:
    """Open what has a name of `name_part`."""
    if name == _WHOLE_NAME:
        return ServedWhole(shards, models)
    return ServedShard(shards, int(name.rpartition("-")[2]), models)


@dataclass(frozen=True, slots=True)
class ShardCaller(Caller):
    """A caller who reaches the projects of one shard alone."""

    shards: Shards | None = None
    shard: int = -1
    reach: Reach = "project"

    def place(self, org: str, project: str, needed: Any) -> Place:  # noqa: ANN401  as `Caller`
        """Return a project to act in, and in nothing of its organisation; see `Caller.place`."""
        self._check_shard(org, project)
        return replace(Caller.place(self, org, project, needed), reach="project")

    def bind(self, scope: Scope) -> Scope:
        """Return a scope within the shard; an open one for who may only read, or reaches it all.

        Raises:
            NotPermitted: As of `Caller.bind`, or it lies in another shard.
        """
        bound = Caller.bind(self, scope)
        if self.reach == "project" and (bound.project is not None or self.may("write")):
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
        return max(self._objects.numbers(self._folder), default=0)

    def _name(self, number: int) -> str:
        return f"{self._folder}/{number:012}"


@dataclass(slots=True)
class _State:
    """A service over one state of the shard's catalog.

    Attributes:
        catalog: The catalog, as it was when the service was made and as the service has changed it.
        app: Answers requests by the service.
        opened: Closes the service.
        answering: How many requests it is answering.
    """

    catalog: ShardCatalog
    app: FastAPI
    opened: ExitStack
    answering: int = 0


class ServedShard:
    """One open shard, which answers requests until it is closed."""

    def __init__(self, shards: Shards, shard: int, models: ServiceModels) -> None:
        """Open a shard; nobody is kept from writing it before a request writes."""
        self._shards, self._shard, self._models = shards, shard, models
        self._objects = Objects(shards.root)
        self._opened = ExitStack()
        self._older: list[_State] = []
        self._lease = shards.lease(shard)
        held = hold_shard(shards, shard, models.embedder, lease=self._lease)
        self._engine = self._opened.enter_context(held)
        self._loading = asyncio.Lock()
        self._told: Counter[str] = Counter()
        self._lease.events["opened"] = 1
        self._state = self._load()

    async def answer(self, request: ForwardedRequest) -> tuple[Answer, Events]:
        """Answer one request, and tell what became of the shard."""
        async with self._loading:
            # Nobody else can have written while this process is the sole writer.
            if not self._lease.is_sole() and not await asyncio.to_thread(self._is_newest):
                self._older.append(self._state)
                self._state = await asyncio.to_thread(self._load)
            state = self._state
            state.answering += 1
        name, org, project, rights = request.caller
        bound = (name, org, project, rights)
        caller = ShardCaller(*bound, self._shards, self._shard, request.reach)
        try:
            answer = await _call(state.app, request, caller)
        finally:
            state.answering -= 1
            await self._close_older()
        events = Counter(self._lease.events)
        since, self._told = events - self._told, events
        return answer, since

    def close(self) -> None:
        """Finish every write, and give the lease back."""
        self._opened.close()

    __del__ = close
    """Ray calls it when it takes the shard from this replica."""

    def _is_newest(self) -> bool:
        return self._state.catalog.is_newest()

    async def _close_older(self) -> None:
        """Close the services over earlier states that answer nothing any more."""
        done = [each for each in self._older if not each.answering]
        self._older = [each for each in self._older if each.answering]
        for each in done:
            await asyncio.to_thread(each.opened.close)

    def _load(self) -> _State:
        """Open the newest catalog, and a service over it."""
        opened = ExitStack()
        # Closed with the shard, where nothing has closed it before.
        self._opened.callback(opened.close)
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="ekphory-")))
        name = self._shards.catalog(self._shard)
        catalog = ShardCatalog(self._objects, name, folder / "catalog.sqlite3")

        def publish(content: bytes) -> None:
            # By the shard's writer, and as the state after the one that was read: where another
            # process has published one since, this is refused.
            self._engine.writer.submit(lambda: catalog.publish(content)).result()

        service = MemoryService(
            self._engine.uri,
            models=self._models,
            catalog=catalog.path,
            extraction=_LEARNING_NOTHING,
            part=ClusterPart(
                publish=publish,
                trace_prefix=f"{self._shard:0{_TRACE_DIGITS}x}",
                remedies=_REMEDIES,
            ),
        )
        opened.callback(service.close)
        app = create_app(service, ServerOptions(store=self._engine.uri), layers=[])
        return _State(catalog, app, opened)


class ServedWhole:
    """All shards, read as one store until they are closed."""

    def __init__(self, shards: Shards, models: ServiceModels) -> None:
        """Open all shards."""
        self._opened = ExitStack()
        engine = self._opened.enter_context(hold_all(shards, models.embedder))
        folder = Path(self._opened.enter_context(tempfile.TemporaryDirectory(prefix="ekphory-")))
        service = MemoryService(
            engine.uri,
            models=models,
            catalog=folder / "catalog.sqlite3",
            extraction=_LEARNING_NOTHING,
            part=ClusterPart(publish=None, trace_prefix="", remedies=_REMEDIES),
        )
        self._opened.callback(service.close)
        self._app = create_app(service, ServerOptions(store=engine.uri), layers=[])

    async def answer(self, request: ForwardedRequest) -> tuple[Answer, Events]:
        """Answer one request, within what its caller's key reaches."""
        return await _call(self._app, request, Caller(*request.caller)), {}

    def close(self) -> None:
        """Close all shards."""
        self._opened.close()

    __del__ = close
    """As that of `ServedShard`."""


async def _call(app: FastAPI, request: ForwardedRequest, caller: Caller) -> Answer:
    scope = {
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
    waiting = [{"type": "http.request", "body": request.body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return waiting.pop() if waiting else {"type": "http.disconnect"}

    async def send(message: Any) -> None:  # noqa: ANN401  as ASGI has it
        sent.append(message)

    await app(scope, receive, send)
    whole = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], list(sent[0].get("headers", [])), whole
