"""The verbs of `Memory`, a path each: what `Memory("http://…")` asks, and what it is answered."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from http import HTTPStatus
from tempfile import TemporaryFile
from typing import IO, Annotated, Any

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, BeforeValidator, Field, model_validator
from starlette.background import BackgroundTask

from ekphory.agent.provider import AgentOptions
from ekphory.catalog.access_keys import Rights
from ekphory.catalog.database import NotThere
from ekphory.errors import InvalidInput
from ekphory.memory import Memory
from ekphory.remote import EXPORT_REPORT, VERBS_PATH
from ekphory.scope import SCOPE_FIELDS, Scope
from ekphory.search import SearchResult
from ekphory.server.errors import describe_verb_error
from ekphory.server.request_log import Metrics
from ekphory.server.routes.context import NOT_THERE, REFUSALS, ToRead, begin_session
from ekphory.server.schemas.names import refuse_others
from ekphory.service.memory_service import MemoryService
from ekphory.transfer import ExportReport, export_anew
from ekphory.types import WriteReport, to_plain_data

_LONGEST_WAIT = 2.0
_PIECE = 2**16
_NEVER_SENT = ("on_progress", "agent_options")
"""Arguments of verbs that JSON has nothing like."""
_LINES = "application/x-ndjson"


def _settle(memory: Memory, timeout: float | None = None) -> bool:
    """Wait for a moment until all that was written is compared; return whether it is."""
    try:
        wait = _LONGEST_WAIT if timeout is None else timeout
        memory.settle(min(wait, _LONGEST_WAIT) if isinstance(wait, float | int) else wait)
    except TimeoutError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Exported:
    """An export that is whole, and the file that has it."""

    report: ExportReport
    file: IO[bytes]

    def send(self) -> Response:
        """Answer with it, and let the file go."""
        return StreamingResponse(
            iter(lambda: self.file.read(_PIECE), b""),
            media_type=_LINES,
            headers={
                EXPORT_REPORT: json.dumps(to_plain_data(self.report)),
                "Content-Length": str(self.report.bytes),
            },
            background=BackgroundTask(self.file.close),
        )

    def read(self) -> dict[str, Any]:
        """Return it as JSON has it, and let the file go; for one that holds no memory."""
        with self.file:
            lines = self.file.read().decode()
        return {"result": to_plain_data(self.report), "lines": lines}


def _export(memory: Memory) -> _Exported:
    """Answer with an export once it is whole."""
    with ExitStack() as unsent:
        file = unsent.enter_context(TemporaryFile())
        report = export_anew(memory.export, file)
        unsent.pop_all()
    file.seek(0)
    return _Exported(report, file)


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb, as it can be asked for.

    Attributes:
        do: What is done with a handle and the arguments.
        needs: The right that it takes; those that concern the whole store take `admin`.
    """

    do: Callable[..., object]
    needs: Rights = "read"


_READING: tuple[Callable[..., object], ...] = (
    *(Memory.search, Memory.get, Memory.list, Memory.count, Memory.history, _export),
    *(Memory.timeline, Memory.profile, Memory.repeated_mistakes, Memory.revisions),
    *(Memory.conflicts, Memory.related, Memory.gate_status, _settle),
)
_WRITING: tuple[Callable[..., object], ...] = (
    *(Memory.add, Memory.add_many, Memory.add_messages, Memory.add_exported, Memory.capture),
    *(Memory.learn_mistake, Memory.add_rule, Memory.promote, Memory.update, Memory.forget),
    *(Memory.supersede, Memory.unsupersede),
)
_FINDING = (Memory.search, Memory.list, Memory.count)
_LISTED = "POST /api/v2/projects/list lists the projects that there are."
_CONCERNING_ALL = (Memory.health, Memory.repair, Memory.verify)
VERBS: Mapping[str, Verb] = {
    verb.do.__name__.lstrip("_"): verb
    for verb in (
        *map(Verb, _READING),
        *(Verb(do, "write") for do in _WRITING),
        *(Verb(do, "admin") for do in _CONCERNING_ALL),
    )
}
"""Whatever can be asked for, by its name; nothing else of a handle can."""
WRITING_PATHS = frozenset(
    VERBS_PATH + name for name, verb in VERBS.items() if verb.needs == "write"
)

verbs_router = APIRouter(
    prefix=VERBS_PATH.rstrip("/"), tags=["Memory in Python"], responses=REFUSALS | NOT_THERE
)


class Call(BaseModel):
    """A verb's arguments, and the scope of the handle that it is called on."""

    scope: Annotated[Scope, BeforeValidator(partial(refuse_others, known=SCOPE_FIELDS))] = Field(
        default=Scope(), description="Further bound by the key."
    )
    arguments: dict[str, Any] = Field(
        default={}, description="By their names in Python; moments as ISO 8601, filters as text."
    )

    @model_validator(mode="before")
    @classmethod
    def _names_nothing_else(cls, given: object) -> object:
        return refuse_others(given, known=("scope", "arguments"))


class Returned(BaseModel):
    """What the verb returned; a dataclass as an object of its fields."""

    result: Any
    hint: str | None = Field(default=None, description="What to do where the scope holds nothing.")
    lines: str | None = Field(default=None, description="The export of an absent project.")


def _serve(verb: Verb) -> Callable[..., Response]:
    """Return what answers a verb's path."""

    def answer(call: Call, session: ToRead) -> Response:
        if verb.needs == "admin":
            session.caller.check_unbound()
        scope = session.caller.bind(call.scope)
        if call.arguments.get("scan"):
            session.caller.check_rights("write")  # it may decide
        # What concerns all projects is asked of the main store, whichever one the scope names.
        with session.service.open(Scope() if verb.needs == "admin" else scope) as memory:
            _check_arguments(verb.do, call.arguments)
            given = call.arguments
            if given.get("agent_mode"):
                # Those of the server's configuration, with models that are loaded once.
                options = AgentOptions(settings=session.service.configuration.agent())
                given = given | {"agent_options": options}
            result = verb.do(memory, **given)
            is_nothing = verb.needs == "read" and _tells_nothing(result) and not memory.count()
        _measure(result, session.metrics)
        is_absent = is_nothing and not _has_project(call.scope, scope, session.service)
        if isinstance(result, _Exported) and not is_absent:
            return result.send()
        status, content = HTTPStatus.OK, _make_content(result)
        if is_absent:
            # Beside its error, a project that is not there has what `Memory` returns of it.
            status = HTTPStatus.NOT_FOUND
            absent = NotThere(f"There is no {_name_project(scope)} in this store. {_LISTED}")
            content |= describe_verb_error(absent, status)
        elif is_nothing and verb.do in _FINDING:
            content["hint"] = f"There is no memory{_in_words(scope)} in this store. {_LISTED}"
        return Response(json.dumps(content), status, media_type="application/json")

    return answer


for _name, _verb in VERBS.items():
    verbs_router.add_api_route(
        f"/{_name}",
        _serve(_verb),
        methods=["POST"],
        response_model=Returned,
        responses={200: {"content": {_LINES: {}}}} if _verb.do is _export else {},
        dependencies=[begin_session(_verb.needs)],
        name=_name,
        description=inspect.getdoc(_verb.do),
    )


def _make_content(result: object) -> dict[str, Any]:
    if isinstance(result, _Exported):
        return result.read()
    return {"result": to_plain_data(result)}


def _tells_nothing(result: object) -> bool:
    """Whether a verb that reads has told nothing of any memory."""
    if isinstance(result, _Exported):
        return not result.report.memories
    return isinstance(result, bool) or not result  # whether all is settled


def _has_project(given: Scope, bound: Scope, service: MemoryService) -> bool:
    """Whether there is a project in a scope, or none was asked for by its name."""
    if given.org is None and given.project is None:
        return True
    return any(
        bound.org in (None, each.org) and bound.project in (None, each.project)
        for each in service.list_projects()
    )


def _name_project(scope: Scope) -> str:
    project = "project" if scope.project is None else f"project {scope.project!r}"
    return project if scope.org is None else f"{project} of organisation {scope.org!r}"


def _in_words(scope: Scope) -> str:
    return f" of {', '.join(named)}" if (named := scope.named()) else ""


def _check_arguments(do: Callable[..., object], given: Mapping[str, Any]) -> None:
    """Check that a verb has such arguments; what values they may have is the verb's to say.

    Raises:
        InvalidInput: There is none of that name that can be sent, or one is missing.
    """
    signature = _find_signature(do)
    try:
        signature.bind(None, **given)
    except TypeError as error:
        remedy = f"Give {', '.join(list(signature.parameters)[1:]) or 'none'}"
        raise InvalidInput("arguments", sorted(given), str(error), remedy) from error
    for name in _NEVER_SENT:
        if given.get(name) is not None:
            raise InvalidInput(name, given[name], "cannot be sent to a server", "Leave it out")


_find_signature = lru_cache(inspect.signature)


def _measure(result: object, metrics: Metrics) -> None:
    if isinstance(result, WriteReport):
        metrics.added.inc(result.added)
    if isinstance(result, SearchResult):
        for stage in result.trace.stages:
            metrics.stage(stage.name, stage.milliseconds)
