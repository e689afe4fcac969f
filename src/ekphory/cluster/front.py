"""The front of a cluster, which lets requests in and hands each to the shard of its project.

It is the server of `ekphory serve` with the same layers: it checks the key, limits, and logs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.encoders import jsonable_encoder
from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry, Gauge, Summary, generate_latest
from prometheus_client import Counter as PrometheusCounter
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ekphory import __version__
from ekphory.catalog.access_keys import AccessKeys
from ekphory.catalog.database import Database
from ekphory.cluster.open_scopes import OpenCall
from ekphory.cluster.served_shards import (
    WHOLE,
    ForwardedRequest,
    Reach,
    find_traced_shard,
    name_part,
)
from ekphory.cluster.shards import Shards
from ekphory.errors import StoreError
from ekphory.importers.source import parse_object
from ekphory.remote import VERBS_PATH
from ekphory.server.app import PATHS, describe_routes, mount_assets, show_docs
from ekphory.server.auth import Caller
from ekphory.server.errors import RETRY, add_error_handlers, make_error_response
from ekphory.server.limits import METHODS, Slots, guard, is_write
from ekphory.server.options import ServerOptions
from ekphory.server.request_log import Metrics
from ekphory.server.routes import inspect
from ekphory.server.tenants import find_project
from ekphory.service import inspection
from ekphory.service.handles import catalog_file

READ_SECONDS = 5.0
"""So long a read may take; then it is refused, and can be asked again."""
WHOLE_SECONDS = 55.0
"""So long where all shards are read as one: less than clients wait."""
_HEALTH = ("/health", "/api/v2/health")
_PROJECTS = "/api/v2/projects/list"
_INSPECT = "/api/v2/inspect"
_TRACES = "/api/v2/traces"
_CONFIG = "/api/v2/config"
_NOT_HANDED_ON = (b"authorization", b"content-length")
_OF_THE_STORE = frozenset(VERBS_PATH + name for name in ("health", "repair", "verify"))
_UNHURRIED = _OF_THE_STORE | {VERBS_PATH + name for name in ("conflicts", "export")}
"""Reads that may go through all memories of a project."""
_PAGES = frozenset(route.path for route in inspect.inspector_page_router.routes)  # type: ignore[attr-defined]
_UNCOUNTED = "A shard did not say how many memories it holds. Try again."

Ask = Callable[[int, ForwardedRequest], Any]
"""Asks the replica of a shard; what it returns is awaited."""


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
        # What asks all shards takes long, and leaves half of the threads to what asks one.
        most_of_all = max(1, options.limits.threads // 2)
        self._slots_of_whole = Slots(most=most_of_all, most_of_one=most_of_all)
        app = FastAPI(
            title="ekphory",
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
            middleware=guard(keys, options, self._metrics, count=self._count),
        )
        app.openapi = _describe  # type: ignore[method-assign]
        add_error_handlers(app)
        mount_assets(app)
        app.include_router(inspect.inspector_page_router)
        own = {
            "/docs": show_docs,
            **dict.fromkeys(_HEALTH, _health),
            **dict.fromkeys(("/metrics", "/api/v2/metrics"), self._show_metrics),
            _PROJECTS: self._list_projects,
            f"{_TRACES}/{{trace_id}}": self._show_trace,
            f"{_INSPECT}/growth": self._show_growth,
            f"{_INSPECT}/health": self._show_health,
            f"{_INSPECT}/latency": self._show_latency,
        }
        for path, answer in own.items():
            methods = ["POST"] if path == _PROJECTS else ["GET"]
            app.add_api_route(path, answer, methods=methods, response_model=None)
        for path in _HEALTH:
            app.add_api_route(path, _health, methods=["HEAD"])
        for path in sorted(PATHS - _PAGES - own.keys()):
            # Each by its name, for the log and the metrics.
            app.add_api_route(path, self._forward, methods=list(METHODS), response_model=None)
        return app

    async def _show_metrics(self, request: Request) -> Response:
        request.state.caller.check_unbound()
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
        asked = parse_object(body)
        org, project = find_project(path, asked or {}, request.state.caller)
        is_verb = path.startswith(VERBS_PATH)
        if path in _OF_THE_STORE or (is_verb and not (org and project)):
            return await self._answer_open(request, asked)
        return await self._answer(self._shards.find(org, project), request, body)

    async def _answer_open(self, request: Request, asked: Mapping[str, Any] | None) -> Response:
        """Answer a verb that names no project."""
        if asked is None:
            # Whichever part is asked says what is wrong with the body.
            return await self._answer(WHOLE, request, await request.body())

        async def ask(
            part: int, verb: str, call: Mapping[str, Any], *, reach: Reach = "project"
        ) -> Response:
            path, body = VERBS_PATH + verb, json.dumps(call).encode()
            return await self._answer(part, request, body, path=path, reach=reach)

        verb, caller = request.url.path.removeprefix(VERBS_PATH), request.state.caller
        call = OpenCall(verb=verb, call=asked, caller=caller, shards=self._shards, ask=ask)
        return await call.answer()

    async def _show_trace(self, request: Request) -> Response:
        shard = find_traced_shard(request.path_params["trace_id"], self._shards)
        # Whichever it is does not have one that none could keep, and says so as `ekphory serve`.
        return await self._answer(shard or 0, request, b"")

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

    async def _answer(
        self,
        shard: int,
        request: Request,
        body: bytes,
        *,
        path: str | None = None,
        reach: Reach = "project",
    ) -> Response:
        """Ask a shard for what came, or for another path; see `ForwardedRequest` for `reach`."""
        caller: Caller = request.state.caller
        forwarded = ForwardedRequest(
            method=request.method,
            path=path or request.url.path,
            query=request.scope["query_string"],
            headers=[each for each in request.headers.raw if each[0] not in _NOT_HANDED_ON],
            body=body,
            caller=(caller.name, caller.org, caller.project, caller.rights),
            reach=reach,
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
        name, measured = name_part(self._shards, shard), self._of_shards
        slots = self._slots_of_whole if shard == WHOLE else self._slots
        if slots.is_full(name):
            message = "Too many requests wait for this project's shard. Try again in a moment."
            if shard == WHOLE:
                message = "Too many requests ask all shards. Name org and project, or try again."
            return make_error_response(request.path, 503, message, kind="Overloaded", headers=RETRY)
        is_writing = is_write({"method": request.method, "path": request.path})
        seconds: float | None = WHOLE_SECONDS if shard == WHOLE else READ_SECONDS
        if is_writing or request.path in _UNHURRIED:
            seconds = None
        status = 503
        try:
            with (
                slots.taken_by(name),
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


@cache
def _describe() -> dict[str, Any]:
    """Describe what a cluster answers."""
    return describe_routes(_is_described)


def _is_described(route: APIRoute) -> bool:
    # What would change the configuration is answered with what to do instead.
    return not route.path.startswith(_CONFIG) or "GET" in (route.methods or ())


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "healthy", "service": "ekphory", "version": __version__})
