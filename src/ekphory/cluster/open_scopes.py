"""Verbs of handles that are bound to no project: read from all shards, done where they belong.

A single store finds what such a handle sees by one look. Here all shards are read as one store, and
what writes is handed to the shard of the project that it concerns. What the key of the caller is
bound to bounds each of these requests, as it does those that name a project.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol

from starlette.responses import JSONResponse, Response

from ekphory.cluster.served_shards import WHOLE, Reach
from ekphory.cluster.shards import Shards
from ekphory.errors import InvalidInput
from ekphory.scope import DEFAULT_NAME, check_name
from ekphory.server.auth import Caller
from ekphory.server.routes.verbs import VERBS

_ADDING = frozenset(("add", "add_messages", "capture", "learn_mistake", "add_rule"))
"""Verbs that write into `DEFAULT_NAME` what no project is named for."""
_ADDING_RECORDS = frozenset(("add_many", "add_exported"))
"""Verbs whose records may name a project each."""
_CHANGING = {"update": "id", "forget": "id", "promote": "id", "supersede": "old"}
"""Verbs that change one memory, and the argument that names it."""
Join = Callable[[Iterable[Any]], object]
"""Makes one result of those of all shards."""
_OF_ALL: Mapping[str, Join] = {"settle": all, "repair": lambda _: None, "unsupersede": sum}
"""Verbs that every shard is asked for."""
_PROJECT_FIELDS = ("org", "project")
_OK = HTTPStatus.OK
_NO_DECISION, _NO_PROJECT = HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.NOT_FOUND


class AskVerb(Protocol):
    """Asks a part of a cluster for a verb."""

    def __call__(
        self, part: int, verb: str, call: Mapping[str, Any], *, reach: Reach = "project"
    ) -> Awaitable[Response]:
        """Return its answer; `call` has the scope and the arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A verb that names no project, or concerns the whole store.

    Attributes:
        verb: Its name.
        call: Scope and arguments, as they came.
        caller: Who asks.
        shards: The store.
        ask: Asks a part of it.
    """

    verb: str
    call: Mapping[str, Any]
    caller: Caller
    shards: Shards
    ask: AskVerb

    async def answer(self) -> Response:
        """Let it be done.

        Raises:
            NotPermitted: The key does not allow as much.
        """
        self.caller.check_rights(VERBS[self.verb].needs)
        if self._arguments.get("scan"):
            return await self._scan()
        join = self._find_join()
        if join is not None:
            return await self._ask_all(join)
        if self.verb in _CHANGING:
            return await self._change()
        if self.verb in _ADDING_RECORDS:
            return await self._add_records()
        part = self._find_shard({}) if self.verb in _ADDING else WHOLE
        return await self.ask(part, self.verb, self.call)

    @property
    def _arguments(self) -> Mapping[str, Any]:
        return _mapping(self.call.get("arguments"))

    def _named(self, name: str) -> str | None:
        """Return what the key, or else the scope, binds."""
        bound: str | None = getattr(self.caller, name)
        return bound or _name_in(self.call.get("scope"), name)

    def _find_shard(self, own: Mapping[str, str]) -> int:
        """Return the shard of what is written with names of its own."""
        names = [own.get(name, self._named(name)) for name in _PROJECT_FIELDS]
        return self.shards.find(*names)

    def _find_join(self) -> Join | None:
        """Return how the results of all shards are joined; None for what is not asked of all."""
        if self.verb == "forget" and self._arguments.get("id") is None:
            return sum
        return _OF_ALL.get(self.verb)

    def _find_skipped(self) -> HTTPStatus:
        """Return how a shard answers that has nothing of what others have."""
        if self.verb == "unsupersede":
            return _NO_DECISION
        return _NO_PROJECT if VERBS[self.verb].needs == "read" else _OK

    async def _ask_all(self, join: Join) -> Response:
        """Ask every shard, and join the results; where one refuses, its answer is all."""
        asking = [
            self.ask(shard, self.verb, self.call, reach="shard")
            for shard in range(self.shards.count)
        ]
        answers = await asyncio.gather(*asking)
        done = [each for each in answers if each.status_code == _OK]
        # A decision or a project is in some shards; the others say that they have none.
        skipped = self._find_skipped() if done else _OK
        refusal = next((a for a in answers if a.status_code not in (_OK, skipped)), None)
        return refusal or _returned(join([_result_of(each) for each in done]))

    async def _scan(self) -> Response:
        """Look for conflicts in each shard, and then at what was found in all of them."""
        scanned = await self._ask_all(lambda _: None)
        if scanned.status_code != _OK:
            return scanned
        arguments = {**self._arguments, "scan": False}
        return await self.ask(WHOLE, self.verb, {**self.call, "arguments": arguments})

    async def _change(self) -> Response:
        """Change a memory in the project that holds it."""
        looked_for = {"id": self._arguments.get(_CHANGING[self.verb])}
        found = await self.ask(WHOLE, "get", {**self.call, "arguments": looked_for})
        if found.status_code != _OK:
            return found
        record = _result_of(found)
        own = {name: record[name] or DEFAULT_NAME for name in _PROJECT_FIELDS}
        return await self.ask(self._find_shard(own), self.verb, self._bind(own))

    async def _add_records(self) -> Response:
        """Hand each record to the shard of its project, and join the reports."""
        records = self._arguments.get("records")
        given = records if isinstance(records, list) else []
        places: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for place, record in enumerate(given):
            places.setdefault(self._own_names(record), []).append(place)
        if len(places) < 2:
            own = dict(next(iter(places), ()))
            return await self.ask(self._find_shard(own), self.verb, self._bind(own))
        joined: dict[str, Any] = {"added": 0, "skipped": 0, "failed": [], "ids": [], "sampled": []}
        for names, own_places in places.items():
            own, part = dict(names), [given[place] for place in own_places]
            call = self._bind(own) | {"arguments": {**self._arguments, "records": part}}
            answer = await self.ask(self._find_shard(own), self.verb, call)
            if answer.status_code != _OK:
                return answer
            report = _result_of(answer)
            report["failed"] = [
                {**each, "index": own_places[each["index"]]} for each in report["failed"]
            ]
            joined = {name: joined[name] + report[name] for name in joined}
        joined["failed"].sort(key=lambda each: each["index"])
        order = {str(_mapping(record).get("id")): place for place, record in enumerate(given)}
        joined["ids"].sort(key=lambda each: order.get(each, len(given)))
        return _returned(joined)

    def _own_names(self, record: object) -> tuple[tuple[str, str], ...]:
        """Return the organisation and project that a record names where none is bound."""
        open_names = (name for name in _PROJECT_FIELDS if self._named(name) is None)
        given = ((name, _name_in(record, name)) for name in open_names)
        return tuple((name, value) for name, value in given if value is not None)

    def _bind(self, own: Mapping[str, str]) -> dict[str, Any]:
        """Return the call with a scope of these names, where it leaves them open."""
        scope = self.call.get("scope", {})
        if isinstance(scope, dict):
            scope = {**own, **{name: each for name, each in scope.items() if each is not None}}
        return {**self.call, "scope": scope}


def _name_in(given: object, field: str) -> str | None:
    """Return a name; None for what is none, which is told where it would be written."""
    try:
        return check_name(field, _mapping(given).get(field))
    except InvalidInput:
        return None


def _mapping(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, dict) else {}


def _result_of(answer: Response) -> Any:  # noqa: ANN401  what the verb returns
    return json.loads(bytes(answer.body))["result"]


def _returned(result: object) -> Response:
    return JSONResponse({"result": result})
