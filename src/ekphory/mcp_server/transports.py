"""The SDK's server over the calls of tools, and how it is served: over pipes or streamable HTTP."""

from __future__ import annotations

import json
import logging
import logging.config
import signal
import socket
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TextIO, TypeVar, cast, get_args, get_origin

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectSendStream
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from ekphory import __version__
from ekphory.catalog.access_keys import AccessKeys
from ekphory.catalog.database import Database, NotPermitted, NotThere
from ekphory.config import Settings
from ekphory.errors import EkphoryError, InvalidInput, MemoryNotFound, shorten
from ekphory.mcp_server.memmachine import Toolset, tools_of
from ekphory.mcp_server.memory_tools import RESOURCES, find_resource, prompts_beside
from ekphory.mcp_server.tool import (
    WORDS,
    Answered,
    AnyTool,
    Arguments,
    Kind,
    Memories,
    configured_scope,
)
from ekphory.scope import SCOPE_FIELDS, Scope
from ekphory.server.auth import Caller
from ekphory.server.limits import guard
from ekphory.server.options import ServerOptions
from ekphory.server.request_log import LOG, Application, Metrics, places_of
from ekphory.server.serving import Listening, serve_application
from ekphory.service.handles import catalog_file

# What was wrong with a call.

DEFECT = "This is a defect of ekphory. The server's log says more; nothing is half written."
_HIDDEN = "The memory cannot do this at the moment. The server's log says why."
_SCOPE_NAMES = frozenset({*SCOPE_FIELDS, "org_id", "proj_id", "project_id", "user_id"})


class UnusableCall(EkphoryError):
    """A call of a tool that is not there, or with arguments that it does not take."""


_OF_THE_CALLER = (UnusableCall, InvalidInput, MemoryNotFound, NotPermitted, NotThere)


def check_arguments(tool: AnyTool, given: Mapping[str, Any]) -> Arguments:
    """Read the arguments of a call.

    Raises:
        UnusableCall: Some cannot be used; says which, with value and remedy, a line each.
    """
    try:
        read: Arguments = tool.arguments.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        raise UnusableCall("\n".join(_refused(each, tool) for each in found)) from None
    return read


def is_of_the_caller(error: Exception) -> bool:
    """Whether the caller can put it right."""
    return isinstance(error, _OF_THE_CALLER)


def failure(error: EkphoryError, *, names_places: bool) -> str:
    """Say what failed.

    Args:
        error: What was raised.
        names_places: Whether whoever asks may read of paths and addresses of this machine.
    """
    if isinstance(error, MemoryNotFound):
        return (
            f"id={shorten(error.memory_id)}: no such memory. Take an id that a search or a "
            "listing gave."
        )
    return str(error) if is_of_the_caller(error) or names_places else _HIDDEN


def _refused(found: Mapping[str, Any], tool: AnyTool) -> str:
    *around, last = found["loc"]
    place, name = (".".join(map(str, parts)) for parts in (around, found["loc"]))
    fields = _model_at(tool.arguments, around).model_fields
    known = f"{place or tool.name} takes: {', '.join(fields)}"
    if found["type"] == "missing":
        return f"{name}: is missing. {known}."
    value = shorten(found["input"])
    if found["type"] != "extra_forbidden":
        return f"{name}={value}: {found['msg'].removeprefix('Value error, ')}."
    if last in _SCOPE_NAMES:
        return (
            f"{name}={value}: the scope comes from the server's configuration or the access key, "
            "never from a call. Leave it out."
        )
    return f"{name}={value}: no such argument. {known}."


def _model_at(model: type[BaseModel], place: Sequence[str | int]) -> type[BaseModel]:
    """Return the model of what stands in a list of the arguments, else that of the arguments."""
    held = get_args(model.model_fields[str(place[0])].annotation) if place else ()
    classes = (each for each in held if get_origin(each) is None and isinstance(each, type))
    return next((each for each in classes if issubclass(each, BaseModel)), model)


# Calls of tools.

Outcome = Literal["done", "refused", "failed", "defect"]
_log = logging.getLogger("ekphory.mcp")


class Calls:
    """Answers the calls of one set of tools over one store; safe to use from several threads."""

    def __init__(
        self, memories: Memories, tools: Sequence[AnyTool], scope: Scope, *, kind: Kind = "tool"
    ) -> None:
        """Make them.

        Args:
            memories: The open store.
            tools: What is offered.
            scope: What every call is bound to; a key may narrow it.
            kind: What the protocol calls them.
        """
        self._memories = memories
        self._scope = scope
        self._kind = kind
        self._tools = {tool.name: tool for tool in tools}

    def beside(self, tools: Sequence[AnyTool], *, kind: Kind) -> Calls:
        """Return the calls of others over the same memories."""
        return Calls(self._memories, tools, self._scope, kind=kind)

    def offered(self, caller: Caller | None = None) -> list[AnyTool]:
        """Return what a caller may use; None stands for this machine's user."""
        return [each for each in self._tools.values() if caller is None or caller.may(each.needed)]

    def answer(self, name: str, arguments: Mapping[str, Any], caller: Caller | None) -> Answered:
        """Answer one call.

        Args:
            name: The tool's name.
            arguments: What is given to it.
            caller: Whoever has come in by HTTP; None for the process at the other end of the pipe,
                which is this machine's user.

        Raises:
            MCPError: Whatever went wrong, in words for the caller.
        """
        started = time.perf_counter()
        failed: Exception | None = None
        try:
            return self._run(name, arguments, caller)
        except EkphoryError as error:
            failed = error
            code = types.INVALID_PARAMS if is_of_the_caller(error) else types.INTERNAL_ERROR
            raise MCPError(code, failure(error, names_places=caller is None)) from None
        except Exception as error:  # noqa: BLE001  outermost: told without its text, and logged
            failed = error
            raise MCPError(types.INTERNAL_ERROR, DEFECT) from None
        finally:
            fields: dict[str, Any] = {
                # A name may be any text: only those that are known are told.
                self._kind: name if name in self._tools else "unknown",
                "outcome": _outcome(failed),
                "milliseconds": round((time.perf_counter() - started) * 1000, 2),
                "caller": caller.name if caller else None,
            }
            _note(fields, failed)

    def _run(self, name: str, arguments: Mapping[str, Any], caller: Caller | None) -> Answered:
        tool = self._tools.get(name)
        if tool is None:
            names = ", ".join(self._tools)
            raise UnusableCall(f"There is no {self._kind} {shorten(name)}. There are: {names}.")
        if caller is not None:
            caller.check_rights(tool.needed)
        given = check_arguments(tool, arguments)
        scope = self._scope if caller is None else caller.bind(self._scope)
        with self._memories.use(scope) as memory:
            answered: Answered = tool.run(memory, given)
        return answered


def _note(fields: dict[str, Any], failed: Exception | None) -> None:
    if failed is not None and not is_of_the_caller(failed):
        fields["exception"] = places_of(failed)
        _log.error("call", extra={"fields": fields})
    else:
        _log.info("call", extra={"fields": fields})


def _outcome(failed: Exception | None) -> Outcome:
    if failed is None:
        return "done"
    if is_of_the_caller(failed):
        return "refused"
    return "failed" if isinstance(failed, EkphoryError) else "defect"


# JSON schemas of arguments and answers.


class _Short(GenerateJsonSchema):
    """Without titles, and without a null beside a value that may as well be left out."""

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:  # noqa: ANN401  as inherited
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> JsonSchemaValue:  # noqa: ANN401  likewise
        shown = super().default_schema(schema)
        if shown.get("default", ...) is None:
            del shown["default"]
        return shown

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401, ARG002  as inherited
        return False


def schema_of(
    model: type[BaseModel], mode: Literal["validation", "serialization"]
) -> dict[str, Any]:
    """Return the schema of what goes in (`validation`) or comes out (`serialization`)."""
    schema = model.model_json_schema(schema_generator=_Short, mode=mode)
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("title", None)
        for described in part.get("properties", {}).values():
            if "description" in described:
                described["description"] = " ".join(described["description"].split())
    return schema


# The SDK's server.

Context = ServerRequestContext[Any, Any]
CallerOf = Callable[[Context], Caller | None]
"""Tells who sent a request; None for the process at the other end of the pipe."""


def protocol_server(
    calls: Calls, *, caller_of: CallerOf, on_end: Callable[[], None]
) -> Server[None]:
    """Make a server that any transport can run.

    Args:
        calls: Answers the calls.
        caller_of: Tells who sent a request.
        on_end: Called once, after the last request.
    """

    async def call_tool(
        context: Context, asked: types.CallToolRequestParams
    ) -> types.CallToolResult:
        return await anyio.to_thread.run_sync(
            _call, calls, asked.name, asked.arguments or {}, caller_of(context)
        )

    @asynccontextmanager
    async def lifespan(_: Server[None]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(on_end)

    return Server(
        "ekphory",
        version=__version__,
        title="ekphory",
        instructions=WORDS["texts"]["instructions"],
        lifespan=lifespan,
        on_list_tools=_lister(calls, caller_of, _list_tools),
        on_call_tool=call_tool,
        **_attachments(calls, caller_of),
    )


def _attachments(calls: Calls, caller_of: CallerOf) -> dict[str, Any]:
    """Return the handlers of prompts and resources."""
    prompts = calls.beside(prompts_beside(calls.offered()), kind="prompt")
    resources = calls.beside(RESOURCES, kind="resource")

    async def get_prompt(
        context: Context, asked: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        answered = await anyio.to_thread.run_sync(
            prompts.answer, asked.name, asked.arguments or {}, caller_of(context)
        )
        texts = [types.TextContent(text=text) for text in answered.texts]
        messages = [types.PromptMessage(role="user", content=text) for text in texts]
        return types.GetPromptResult(messages=messages)

    async def read_resource(
        context: Context, asked: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        name, arguments = find_resource(asked.uri)
        answered = await anyio.to_thread.run_sync(
            resources.answer, name, arguments, caller_of(context)
        )
        text = "\n".join(answered.texts)
        content = types.TextResourceContents(uri=asked.uri, mime_type=_PLAIN, text=text)
        return types.ReadResourceResult(contents=[content])

    return {
        "on_list_prompts": _lister(prompts, caller_of, _list_prompts),
        "on_get_prompt": get_prompt,
        "on_list_resources": _lister(resources, caller_of, _list_resources),
        "on_list_resource_templates": _lister(resources, caller_of, _list_templates),
        "on_read_resource": read_resource,
    }


Listing = TypeVar("Listing")


def _lister(
    calls: Calls, caller_of: CallerOf, make: Callable[[list[AnyTool]], Listing]
) -> Callable[[Context, types.PaginatedRequestParams | None], Awaitable[Listing]]:
    """Return the handler that lists what a caller may use."""

    async def list_offered(context: Context, _: types.PaginatedRequestParams | None) -> Listing:
        return make(calls.offered(caller_of(context)))

    return list_offered


def _list_tools(tools: list[AnyTool]) -> types.ListToolsResult:
    return types.ListToolsResult(tools=list(map(describe, tools)))


def _list_prompts(prompts: list[AnyTool]) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=list(map(_describe_prompt, prompts)))


def _list_resources(resources: list[AnyTool]) -> types.ListResourcesResult:
    whole = [each for each in resources if not _is_template(each)]
    found = [types.Resource(uri=each.name, **_described(each)) for each in whole]
    return types.ListResourcesResult(resources=found)


def _list_templates(resources: list[AnyTool]) -> types.ListResourceTemplatesResult:
    templates = filter(_is_template, resources)
    found = [
        types.ResourceTemplate(uri_template=each.name, **_described(each)) for each in templates
    ]
    return types.ListResourceTemplatesResult(resource_templates=found)


def _is_template(resource: AnyTool) -> bool:
    return "{" in resource.name


_PLAIN = "text/plain"


def _described(resource: AnyTool) -> dict[str, Any]:
    title = resource.title
    return {"name": title, "title": title, "description": resource.use, "mime_type": _PLAIN}


def _describe_prompt(prompt: AnyTool) -> types.Prompt:
    taken = [
        types.PromptArgument(name=name, description=field.description, required=field.is_required())
        for name, field in prompt.arguments.model_fields.items()
    ]
    told: dict[str, Any] = {"name": prompt.name, "title": prompt.title, "description": prompt.use}
    return types.Prompt(**told, arguments=taken)


@cache
def describe(tool: AnyTool) -> types.Tool:
    """Return a tool as clients are told of it."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.use,
        input_schema=schema_of(tool.arguments, "validation"),
        output_schema=schema_of(tool.answer, "serialization"),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.effect == "reads",
            destructive_hint=tool.effect == "forgets",
            idempotent_hint=tool.effect != "changes",
            open_world_hint=False,
        ),
    )


def _call(
    calls: Calls, name: str, arguments: Mapping[str, Any], caller: Caller | None
) -> types.CallToolResult:
    """Answer a call of a tool; whatever goes wrong is told in the result."""
    try:
        answered = calls.answer(name, arguments, caller)
    except MCPError as error:
        return _result((error.message,))
    return _result(answered.texts, answered.data.model_dump(mode="json", exclude_none=True))


def _result(texts: Sequence[str], data: dict[str, Any] | None = None) -> types.CallToolResult:
    """Return texts for the model, and data for programs; without data the call has failed."""
    content: list[types.ContentBlock] = [types.TextContent(text=text) for text in texts]
    return types.CallToolResult(content=content, structured_content=data, is_error=data is None)


# Messages that the SDK cannot read: it would leave the client waiting.

Incoming = SessionMessage | Exception
_REMEDY = (
    "The message cannot be read. Send JSON-RPC 2.0, one message a line, in which no text holds "
    "half of a surrogate pair."
)


async def hand_on(
    incoming: AsyncIterable[Incoming],
    readable: MemoryObjectSendStream[Incoming],
    answer: Callable[[SessionMessage], Awaitable[None]],
) -> None:
    """Hand on what can be read, and answer requests that cannot be."""
    async with readable:
        async for item in incoming:
            refusal = _refusal(item) if isinstance(item, ValidationError) else None
            if refusal is None:
                await readable.send(item)
            else:
                await answer(refusal)


def _refusal(error: ValidationError) -> SessionMessage | None:
    """Return the answer to the request in an unreadable line; None where no request is found."""
    line = error.errors(include_url=False)[0]["input"]
    try:
        # More lenient than the SDK, as far as is needed to find the id.
        message: Any = json.loads(line) if isinstance(line, str) else None
    except ValueError:
        return None
    is_request = isinstance(message, dict) and "method" in message
    request_id = message.get("id") if is_request else None
    if not isinstance(request_id, str | int):
        return None
    problem = types.ErrorData(code=types.PARSE_ERROR, message=_REMEDY)
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=problem))


def serve_stdio(settings: Settings, toolset: Toolset, *, catalog: Path | None = None) -> None:
    """Serve until the other end closes the pipe; on return every acknowledged write is on disk.

    Standard output carries the protocol alone; the log goes to standard error. Ctrl-C ends the
    process at once, which loses nothing that was acknowledged.

    Args:
        settings: The store, its models, and the scope that every call is bound to.
        toolset: Which tools are offered.
        catalog: File of the catalog, for MemMachine's tools; None for one in the store's directory.

    Raises:
        EkphoryError: The store or a model cannot be used.
    """
    # A thread waits for the pipe, and no exception would reach it there.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    logging.config.dictConfig(LOG)
    _serve_lines(Memories(settings, catalog=catalog), settings, toolset)


def serve_connection(
    connection: socket.socket, memories: Memories, settings: Settings, toolset: Toolset
) -> None:
    """Serve the other end of a socket as `serve_stdio` serves two pipes; closes `memories`."""
    with (
        connection.makefile("r", encoding="utf-8", errors="replace") as incoming,
        connection.makefile("w", encoding="utf-8") as outgoing,
    ):
        _serve_lines(memories, settings, toolset, (incoming, outgoing))


def _serve_lines(
    memories: Memories,
    settings: Settings,
    toolset: Toolset,
    streams: tuple[TextIO, TextIO] | None = None,
) -> None:
    calls = Calls(memories, tools_of(toolset, memories), configured_scope(settings))
    server = protocol_server(calls, caller_of=lambda _: None, on_end=memories.close)
    anyio.run(_serve, server, streams)


async def _serve(server: Server[None], streams: tuple[TextIO, TextIO] | None) -> None:
    lines = stdio_server(*map(anyio.wrap_file, streams)) if streams else stdio_server()
    async with lines as (incoming, outgoing), anyio.create_task_group() as tasks:
        send, receive = anyio.create_memory_object_stream[Incoming](0)
        tasks.start_soon(hand_on, incoming, send, outgoing.send)
        async with receive:
            await server.run(receive, outgoing, server.create_initialization_options())


# Streamable HTTP, behind the same gate as the REST server.

PATH = "/mcp"


def serve_http(
    settings: Settings,
    toolset: Toolset,
    *,
    server: ServerOptions,
    on_listening: Callable[[Listening], None],
) -> None:
    """Serve until the process is told to end; on return every acknowledged write is on disk.

    Args:
        settings: The store, its models, and the scope that every caller is bound to.
        toolset: Which tools are offered.
        server: Where it listens, who may come in, and how much at a time.
        on_listening: Called once it listens.

    Raises:
        NeedsKey: The address can be reached by others, and there is no key.
        InvalidInput: It cannot listen there, or the store cannot be used.
        StoreError: The store or the catalog cannot be opened.
    """
    factory = partial(application_of, settings, toolset, server=server)
    serve_application(factory, server, on_listening=on_listening)


def application_of(settings: Settings, toolset: Toolset, *, server: ServerOptions) -> Application:
    """Open the store and make the application over it."""
    memories = Memories(settings, catalog=server.catalog)
    database = Database(catalog_file(server.store, server.catalog))

    def end() -> None:
        memories.close()
        database.close()

    calls = Calls(memories, tools_of(toolset, memories), configured_scope(settings))
    protocol = protocol_server(calls, caller_of=_caller_of, on_end=end)
    # Without sessions: each request is let in by its own key, and any process can answer it.
    manager = StreamableHTTPSessionManager(
        protocol,
        json_response=True,
        stateless=True,
        max_request_body_size=server.limits.body_bytes,
        # The gate looks at host and origin, and knows when a key makes up for them.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = server.limits.threads
        async with manager.run():
            yield

    # Only POST: this server never speaks first, so it keeps no streams open.
    route = Route(PATH, endpoint=StreamableHTTPASGIApp(manager), methods=["POST"])
    layers = guard(AccessKeys(database), server, Metrics(), methods=["POST"])
    return Starlette(routes=[route], lifespan=lifespan, middleware=layers)


def _caller_of(context: Context) -> Caller:
    """Return whoever the gate has let in."""
    return cast("Caller", cast("Request", context.request).scope["state"]["caller"])
