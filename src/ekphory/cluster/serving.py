"""Serving a store of shards: a front that lets requests in, and replicas on Ray Serve.

The front is the server of `ekphory serve` with the same layers: it checks the key, limits, and
logs. It then hands the request to the replica where the shard of its project is open, which Ray
Serve finds by multiplexing. Ray's own HTTP proxy does not run: the front is the only way in.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ekphory import __version__
from ekphory.catalog.access_keys import AccessKeys
from ekphory.catalog.database import Database
from ekphory.cluster.bulk import load_chosen_embedder
from ekphory.cluster.ray_session import running_ray
from ekphory.cluster.replica import Answer, ForwardedRequest, ServedShard
from ekphory.cluster.shards import Shards, make_shards, open_shards, shard_name
from ekphory.config import read_settings
from ekphory.importers.source import parse_object
from ekphory.server.auth import Caller
from ekphory.server.errors import RETRY, make_error_response
from ekphory.server.limits import METHODS, guard, is_write
from ekphory.server.options import ServerOptions
from ekphory.server.request_log import Metrics
from ekphory.server.schemas.names import UNIVERSAL
from ekphory.server.serving import Listening, check_key, serve_application
from ekphory.service.handles import catalog_file, load_models

APPLICATION = "ekphory"
READ_SECONDS = 5.0
"""So long a read may take; then it is refused, and can be asked again."""
_PER_REPLICA = 64
"""So many shards a replica keeps open; the one that was asked least lately goes first."""
_ONGOING = 1_000
_PROJECTS = "/api/v2/projects/list"
_SERVED = ("/api/v2/memories", "/api/v2/projects", "/api/v2/memory/episodic")
_MODELS = frozenset(
    {"/rerank", "/v1/rerank", "/v2/rerank", "/api/openmem/v1/rerank", "/v1/embeddings", "/v2/embed"}
)
_NOT_SERVED = "/api/v2/memories/semantic"


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
    with _key_file(options.server) as catalog:
        server = replace(options.server, catalog=catalog, workers=1)
        check_key(server)
        shards = make_shards(server.store, load_chosen_embedder(), count=options.shards)
        # Ends like Ctrl-C: what is open is closed, and its leases are given back.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with running_ray(cpus=options.cpus) as ray, _running_replicas(shards, options) as ask:
            front = Front(shards, ask, errors=(ray.exceptions.RayError,))
            serve_application(lambda: front.application(server), server, on_listening=on_listening)


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
        ray_actor_options={"num_cpus": 0.5},
        graceful_shutdown_timeout_s=60,
    )(_make_replica(serve))
    handle = serve.run(deployment.bind(shards.root), name=APPLICATION, route_prefix=None)
    try:
        yield lambda shard, request: handle.options(multiplexed_model_id=shard_name(shard)).remote(
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

        async def __call__(self, request: dict[str, Any]) -> Answer:
            shard = await self.open_shard(serve.get_multiplexed_model_id())
            answer: Answer = await shard.answer(ForwardedRequest(**request))
            return answer

    return ShardReplica


# The front.


class Front:
    """Hands each request to the replica of its project's shard."""

    def __init__(self, shards: Shards, ask: Ask, *, errors: tuple[type[Exception], ...]) -> None:
        """Take the store, its replicas, and what asking one raises where it has ended."""
        self._shards, self._ask = shards, ask
        self._errors: tuple[type[Exception], ...] = (TimeoutError, *errors)

    def application(self, options: ServerOptions) -> Starlette:
        """Make the application, inside the layers that log, let in and limit."""
        keys = AccessKeys(Database(catalog_file(options.store, options.catalog)))
        return Starlette(
            routes=[
                Route("/health", _health),
                Route("/api/v2/health", _health),
                Route(_PROJECTS, self._list_projects, methods=["POST"]),
                Route("/{path:path}", self._forward, methods=list(METHODS)),
            ],
            middleware=guard(keys, options, Metrics()),
        )

    async def _forward(self, request: Request) -> Response:
        path, body = request.url.path, await request.body()
        if not is_served(path):
            message = "A cluster does not answer this yet. `ekphory serve` does, on one machine."
            return make_error_response(path, 501, message, kind="NotImplemented")
        caller: Caller = request.state.caller
        shard = self._shards.find(*find_project(body, caller))
        return await self._answer(shard, request, body)

    async def _list_projects(self, request: Request) -> Response:
        body = await request.body()
        answers = [self._answer(shard, request, body) for shard in range(self._shards.count)]
        projects: list[dict[str, str]] = []
        for answer in await asyncio.gather(*answers):
            if answer.status_code != 200:
                return answer
            projects += json.loads(bytes(answer.body))
        return JSONResponse(sorted(projects, key=lambda each: sorted(each.items())))

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
        seconds = None if is_write(request.scope) else READ_SECONDS
        try:
            status, headers, content = await asyncio.wait_for(self._ask(shard, forwarded), seconds)
        except self._errors as error:
            request.state.failure = error
            message = "The shard did not answer. What was to be written may or may not be there."
            return make_error_response(
                request.url.path, 503, message, kind="Unanswered", headers=RETRY
            )
        answer = Response(content, status)
        answer.raw_headers = headers
        return answer


def is_served(path: str) -> bool:
    """Whether a cluster answers a path."""
    known = any(path == each or path.startswith(f"{each}/") for each in _SERVED)
    return path in _MODELS or (known and not path.startswith(_NOT_SERVED))


def find_project(body: bytes, caller: Caller) -> tuple[str, str]:
    """Return the project that a request names; where it names none, the key's own.

    What is not a name is left for the shard's application to refuse.
    """
    read = parse_object(body) or {}
    org = read.get("org_id", caller.org or UNIVERSAL)
    project = read.get("project_id", caller.project or UNIVERSAL)
    return org if isinstance(org, str) else "", project if isinstance(project, str) else ""


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "healthy", "service": "ekphory", "version": __version__})
