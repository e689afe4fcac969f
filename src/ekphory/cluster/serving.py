"""Serving a store of shards: a front that lets requests in, and replicas on Ray Serve.

The front hands each request to the replica where the shard of its project is open, which Ray Serve
finds by multiplexing. Ray's own HTTP proxy does not run: the front is the only way in.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ekphory.cluster.bulk import load_chosen_embedder
from ekphory.cluster.front import Ask, Front
from ekphory.cluster.objects import find_root
from ekphory.cluster.ray_session import running_ray
from ekphory.cluster.served_shards import (
    Answer,
    Events,
    ForwardedRequest,
    ServedPart,
    name_part,
    open_part,
)
from ekphory.cluster.shards import Shards, announced, make_shards, open_shards
from ekphory.config import read_settings
from ekphory.errors import InvalidInput
from ekphory.server.options import ServerOptions
from ekphory.server.serving import Listening, check_key, serve_application
from ekphory.service.handles import catalog_file, load_models

APPLICATION = "ekphory"
_PER_REPLICA = 64
"""So many shards a replica keeps open; the one that was asked least lately goes first."""
_ONGOING = 1_000
_REPLICA_CPUS = 0.5


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
        yield lambda shard, request: handle.options(
            multiplexed_model_id=name_part(shards, shard)
        ).remote(asdict(request))
    finally:
        serve.shutdown()


def _make_replica(serve: Any) -> type:  # noqa: ANN401  the module, which need not be installed
    class ShardReplica:
        """Keeps the shards open that it is asked for."""

        def __init__(self, root: str) -> None:
            self._models = load_models(read_settings())
            self._shards = open_shards(root, self._models.embedder)
            self._opening: dict[str, asyncio.Task[ServedPart]] = {}

        @serve.multiplexed(max_num_models_per_replica=_PER_REPLICA)  # type: ignore[untyped-decorator]
        async def get_part(self, name: str) -> ServedPart:
            if name not in self._opening:
                opening = asyncio.to_thread(open_part, self._shards, name, self._models)
                self._opening[name] = asyncio.create_task(opening)
            task = self._opening[name]
            try:
                # A request that is given up goes on opening it for the next one.
                return await asyncio.shield(task)
            finally:
                if task.done():
                    self._opening.pop(name, None)

        async def __call__(self, request: dict[str, Any]) -> tuple[Answer, Events]:
            part: ServedPart = await self.get_part(serve.get_multiplexed_model_id())
            return await part.answer(ForwardedRequest(**request))

    return ShardReplica
