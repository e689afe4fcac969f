"""Serving a store of shards: a front that lets requests in, and replicas on Ray Serve.

The front is the server of `ekphory serve` with the same layers: it checks the key, limits, and
logs. It then hands the request to the replica where the shard of its project is open, which Ray
Serve finds by multiplexing. Ray's own HTTP proxy does not run: the front is the only way in.

A replica answers for some shards with the same application, one for each shard. It believes what
the front says of the caller, and looks again whether the project that is asked for lies in the
shard. How a project is set up stands in a catalog of the shard, whose every state is an object of
its own.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.encoders import jsonable_encoder
from prometheus_client import CollectorRegistry, Gauge, Summary, generate_latest
from prometheus_client import Counter as PrometheusCounter
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ekphory import __version__
from ekphory.catalog.access_keys import AccessKeys
from ekphory.catalog.database import Database, NotPermitted
from ekphory.cluster.bulk import load_chosen_embedder
from ekphory.cluster.objects import Objects, find_root
from ekphory.cluster.ray_session import running_ray
from ekphory.cluster.shards import (
    LAST,
    Shards,
    announced,
    hold_shard,
    make_sealed_error,
    make_shards,
    open_shards,
)
from ekphory.config import read_settings
from ekphory.errors import InvalidInput, StoreError
from ekphory.importers.source import parse_object
from ekphory.remote import VERBS_PATH
from ekphory.scope import Scope
from ekphory.server.app import PATHS, create_app
from ekphory.server.auth import Caller
from ekphory.server.errors import RETRY, add_error_handlers, make_error_response
from ekphory.server.limits import METHODS, Slots, guard, is_write
from ekphory.server.options import ServerOptions
from ekphory.server.request_log import Metrics
from ekphory.server.routes import inspect
from ekphory.server.serving import Listening, check_key, serve_application
from ekphory.server.tenants import find_project
from ekphory.service import inspection
from ekphory.service.handles import Place, ServiceModels, catalog_file, load_models
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


APPLICATION = "ekphory"
READ_SECONDS = 5.0
"""So long a read may take; then it is refused, and can be asked again."""
_PER_REPLICA = 64
"""So many shards a replica keeps open; the one that was asked least lately goes first."""
_ONGOING = 1_000
_PROJECTS = "/api/v2/projects/list"
_INSPECT = "/api/v2/inspect"
_SERVED = ("/api/v2/memories", "/api/v2/projects", "/api/v2/memory/episodic", _INSPECT)
_OF_ONE_STORE = frozenset(VERBS_PATH + name for name in ("health", "repair", "verify"))
_UNHURRIED = frozenset(VERBS_PATH + name for name in ("conflicts", "export"))
"""Reads that may go through all memories of a project."""
_MODELS = frozenset(
    {
        *("/rerank", "/v1/rerank", "/v2/rerank", "/api/openmem/v1/rerank"),
        *("/v1/models", "/v1/embeddings", "/v2/embed"),
    }
)
_REPLICA_CPUS = 0.5
_UNCOUNTED = "A shard did not say how many memories it holds. Try again."


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """How a cluster is served.

    Attributes:
        server: Of the front; its `store` is that of the shards.
        shards: How many there must be; None for as many as there are.
        replicas: Processes that answer, on whichever machines Ray has.
        cpus: Processors of this machine to use; None for all, or for those of the cluster.
    """

    server: ServerOptions
    shards: int | None = None
    replicas: int = 1
    cpus: int | None = None


def serve_cluster(options: ClusterOptions, *, on_listening: Callable[[Listening], None]) -> None:
    """Serve until the process is told to end; see `server.serving.serve`.

    Raises:
        NeedsKey: The address can be reached by others, and there is no key.
        InvalidInput: It cannot listen there, or the store cannot be used.
        StoreError: The store cannot be opened or made.
        MissingExtra: Ray is not installed.
    """
    if options.server.embedder is not None:
        problem = "is for this process alone"
        remedy = "Set EKPHORY_EMBEDDER on all machines"
        raise InvalidInput("embedder", options.server.embedder, problem, remedy)
    with _key_file(options.server) as catalog, announced(find_root(options.server.store)):
        server = replace(options.server, catalog=catalog, workers=1)
        check_key(server)
        shards = make_shards(server.store, load_chosen_embedder(), count=options.shards)
        # Ends like Ctrl-C: what is open is closed, and its leases are given back.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with running_ray(cpus=options.cpus) as ray:
            _check_replicas(options.replicas, cpus=ray.cluster_resources().get("CPU", 0))
            with _running_replicas(shards, options) as ask:
                front = Front(shards, ask, errors=(ray.exceptions.RayError,))
                serve_application(
                    lambda: front.application(server), server, on_listening=on_listening
                )


def _check_replicas(count: int, *, cpus: float) -> None:
    """Refuse what Ray would wait for without end; a cluster that it joins may grow."""
    most = int(cpus / _REPLICA_CPUS)
    if count > most and not os.environ.get("RAY_ADDRESS"):
        problem = f"is more than {cpus:g} processors have room for"
        raise InvalidInput("workers", count, problem, f"Give at most {most}")


@contextmanager
def _key_file(options: ServerOptions) -> Iterator[Path]:
    """Yield the catalog of keys; a new one where none is named, and none can be in the store."""
    if options.catalog is not None or "://" not in options.store:
        yield catalog_file(options.store, options.catalog)
        return
    with tempfile.TemporaryDirectory(prefix="ekphory-keys-") as folder:
        yield Path(folder) / "catalog.sqlite3"


# The replicas.

Ask = Callable[[int, ForwardedRequest], Any]
"""Asks the replica of a shard; what it returns is awaited."""


@contextmanager
def _running_replicas(shards: Shards, options: ClusterOptions) -> Iterator[Ask]:
    serve = importlib.import_module("ray.serve")
    serve.start(proxy_location="Disabled", logging_config={"log_level": "ERROR"})
    deployment = serve.deployment(
        num_replicas=options.replicas,
        max_ongoing_requests=_ONGOING,
        ray_actor_options={"num_cpus": _REPLICA_CPUS},
        graceful_shutdown_timeout_s=60,
    )(_make_replica(serve))
    handle = serve.run(deployment.bind(shards.root), name=APPLICATION, route_prefix=None)
    try:
        yield lambda shard, request: handle.options(multiplexed_model_id=shards.name(shard)).remote(
            asdict(request)
        )
    finally:
        serve.shutdown()


def _make_replica(serve: Any) -> type:  # noqa: ANN401  the module, which need not be installed
    class ShardReplica:
        """Keeps the shards open that it is asked for."""

        def __init__(self, root: str) -> None:
            self._models = load_models(read_settings())
            self._shards = open_shards(root, self._models.embedder)
            self._opening: dict[str, asyncio.Task[ServedShard]] = {}

        @serve.multiplexed(max_num_models_per_replica=_PER_REPLICA)  # type: ignore[untyped-decorator]
        async def open_shard(self, name: str) -> ServedShard:
            if name not in self._opening:
                number = int(name.rpartition("-")[2])
                opening = asyncio.to_thread(ServedShard, self._shards, number, self._models)
                self._opening[name] = asyncio.create_task(opening)
            task = self._opening[name]
            try:
                # A request that is given up goes on opening it for the next one.
                return await asyncio.shield(task)
            finally:
                if task.done():
                    self._opening.pop(name, None)

        async def __call__(self, request: dict[str, Any]) -> tuple[Answer, Events]:
            shard: ServedShard = await self.open_shard(serve.get_multiplexed_model_id())
            return await shard.answer(ForwardedRequest(**request))

    return ShardReplica


# The front.


class ShardMetrics:
    """What the front measures of each shard."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = PrometheusCounter(
            "ekphory_shard_requests",
            "Requests that a shard answered, or did not answer in time (503).",
            ["shard", "status"],
            registry=registry,
        )
        self.seconds = Summary(
            "ekphory_shard_request_seconds",
            "Time that requests waited for a shard's answer.",
            ["shard"],
            registry=registry,
        )
        self.under_way = Gauge(
            "ekphory_shard_requests_under_way",
            "Requests that a shard is answering or that wait for it.",
            ["shard"],
            registry=registry,
        )
        self.events = PrometheusCounter(
            "ekphory_shard_events",
            "How often a shard was opened, and its lease taken, renewed and lost.",
            ["shard", "event"],
            registry=registry,
        )


class Front:
    """Hands each request to the replica of its project's shard."""

    def __init__(self, shards: Shards, ask: Ask, *, errors: tuple[type[Exception], ...]) -> None:
        """Take the store, its replicas, and what asking one raises where it has ended."""
        self._shards, self._ask = shards, ask
        self._errors: tuple[type[Exception], ...] = (TimeoutError, *errors)
        self._metrics = Metrics()
        self._of_shards = ShardMetrics(self._metrics.registry)

    def application(self, options: ServerOptions) -> FastAPI:
        """Make the application, inside the layers that log, let in and limit."""
        keys = AccessKeys(Database(catalog_file(options.store, options.catalog)))
        most = options.limits.shard_concurrency
        self._slots = Slots(most=most * self._shards.count, most_of_one=most)
        app = FastAPI(
            openapi_url=None,
            redirect_slashes=False,
            middleware=guard(keys, options, self._metrics, count=self._count),
        )
        add_error_handlers(app)
        app.include_router(inspect.inspector_page_router)
        for path, answer in {
            **dict.fromkeys(("/health", "/api/v2/health"), _health),
            **dict.fromkeys(("/metrics", "/api/v2/metrics"), self._show_metrics),
            # Each by its name, for the log and the metrics.
            **{path: self._forward for path in sorted(PATHS) if is_served(path)},
            _PROJECTS: self._list_projects,
            f"{_INSPECT}/growth": self._show_growth,
            f"{_INSPECT}/health": self._show_health,
            f"{_INSPECT}/latency": self._show_latency,
            "/{path:path}": self._forward,
        }.items():
            app.add_api_route(path, answer, methods=list(METHODS), response_model=None)
        return app

    async def _show_metrics(self, _: Request) -> Response:
        content = generate_latest(self._metrics.registry)
        return Response(content, media_type=CONTENT_TYPE_LATEST)

    async def _count(self, org: str) -> int:
        """Return how many memories an organisation has in all shards.

        Raises:
            StoreError: A shard does not say.
        """
        asked = ForwardedRequest(
            method="POST",
            path=f"{VERBS_PATH}count",
            query=b"",
            headers=[(b"content-type", b"application/json")],
            # The caller is bound to the organisation: named, it would have to be in every shard.
            body=b"{}",
            caller=("front", org, None, "read"),
        )
        asking = [self._ask_shard(shard, asked) for shard in range(self._shards.count)]
        try:
            answers = await asyncio.gather(*asking)
        except self._errors as error:
            raise StoreError(_UNCOUNTED) from error
        if any(answer.status_code != 200 for answer in answers):
            raise StoreError(_UNCOUNTED)
        return sum(int(json.loads(bytes(answer.body))["result"]) for answer in answers)

    async def _forward(self, request: Request) -> Response:
        path, body = request.url.path, await request.body()
        if not is_served(path):
            message = "A cluster does not answer this yet. `ekphory serve` does, on one machine."
            if path in _OF_ONE_STORE:
                message = "This is of one store. `ekphory cluster verify` looks at all shards."
            return make_error_response(path, 501, message, kind="NotImplemented")
        caller: Caller = request.state.caller
        org, project = find_project(path, parse_object(body) or {}, caller)
        if path.startswith(VERBS_PATH) and not (org and project):
            field, remedy = "project" if org else "org", "Give org and project"
            raise InvalidInput(
                field, None, "is open, and a cluster answers for one project", remedy
            )
        return await self._answer(self._shards.find(org, project), request, body)

    async def _list_projects(self, request: Request) -> Response:
        def join(answers: list[Any]) -> list[dict[str, str]]:
            found = [project for each in answers for project in each]
            return sorted(found, key=lambda each: sorted(each.items()))

        return await self._answer_of_all(request, join)

    async def _show_growth(self, request: Request) -> Response:
        return await self._answer_of_all(
            request,
            lambda answers: inspection.join_growth(
                [inspection.GrowthAnswer.model_validate(each) for each in answers]
            ),
        )

    async def _show_health(self, request: Request) -> Response:
        return await self._answer_of_all(
            request,
            lambda answers: inspect.join_health(
                {
                    self._shards.name(shard): inspect.HealthAnswer.model_validate(each)
                    for shard, each in enumerate(answers)
                }
            ),
        )

    async def _show_latency(self, _: Request) -> Response:
        return JSONResponse(jsonable_encoder(inspect.show_latency(self._metrics)))

    async def _answer_of_all(
        self, request: Request, join: Callable[[list[Any]], object]
    ) -> Response:
        """Ask all shards, and join their answers; where one refuses, its answer is all."""
        body = await request.body()
        asking = [self._answer(shard, request, body) for shard in range(self._shards.count)]
        answers = await asyncio.gather(*asking)
        refusal = next((each for each in answers if each.status_code != 200), None)
        if refusal is not None:
            return refusal
        return JSONResponse(jsonable_encoder(join([json.loads(bytes(a.body)) for a in answers])))

    async def _answer(self, shard: int, request: Request, body: bytes) -> Response:
        caller: Caller = request.state.caller
        forwarded = ForwardedRequest(
            method=request.method,
            path=request.url.path,
            query=request.scope["query_string"],
            headers=[each for each in request.headers.raw if each[0] != b"authorization"],
            body=body,
            caller=(caller.name, caller.org, caller.project, caller.rights),
        )
        try:
            return await self._ask_shard(shard, forwarded)
        except self._errors as error:
            request.state.failure = error
            message = "The shard did not answer. What was to be written may or may not be there."
            return make_error_response(
                request.url.path, 503, message, kind="Unanswered", headers=RETRY
            )

    async def _ask_shard(self, shard: int, request: ForwardedRequest) -> Response:
        """Return a shard's answer, unless too many requests wait for it.

        Raises:
            TimeoutError: It did not answer in time; likewise what `Front` was told.
        """
        name, measured = self._shards.name(shard), self._of_shards
        if self._slots.is_full(name):
            message = "Too many requests wait for this project's shard. Try again in a moment."
            return make_error_response(request.path, 503, message, kind="Overloaded", headers=RETRY)
        is_writing = is_write({"method": request.method, "path": request.path})
        seconds = None if is_writing or request.path in _UNHURRIED else READ_SECONDS
        status = 503
        try:
            with (
                self._slots.taken_by(name),
                measured.under_way.labels(name).track_inprogress(),
                measured.seconds.labels(name).time(),
            ):
                answer, events = await asyncio.wait_for(self._ask(shard, request), seconds)
            status, headers, content = answer
        finally:
            measured.requests.labels(name, str(status)).inc()
        for event, count in events.items():
            measured.events.labels(name, event).inc(count)
        response = Response(content, status)
        response.raw_headers = headers
        return response


def is_served(path: str) -> bool:
    """Whether a cluster answers a path."""
    if path.startswith(VERBS_PATH):
        return path in PATHS and path not in _OF_ONE_STORE
    return path in _MODELS or any(path == each or path.startswith(f"{each}/") for each in _SERVED)


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "healthy", "service": "ekphory", "version": __version__})
