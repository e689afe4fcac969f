"""`ekphory serve`, `mcp`, `keys` and `daemon`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer
from rich.table import Table

from ekphory import resident
from ekphory.cli.command import command, message_console, print_result, result_console
from ekphory.cli.options import OutputOptions, StoreOptions, settings_for
from ekphory.cli.output import print_json
from ekphory.config import read_settings
from ekphory.errors import InvalidInput, MissingExtra
from ekphory.types import to_plain_data

if TYPE_CHECKING:
    from ekphory.catalog.access_keys import AccessKeys, Rights
    from ekphory.config import Settings
    from ekphory.mcp_server.memmachine import Toolset
    from ekphory.server.options import ServerOptions
    from ekphory.server.serving import Listening


_PACKAGES = ("fastapi", "openapi_ui_bundles", "prometheus_client", "uvicorn")
_TRY = """\
try it:
  curl {url}/api/v2/memories{key} -H 'Content-Type: application/json' \\
    -d '{{"messages": [{{"content": "I like pizza"}}]}}'
  curl {url}/api/v2/memories/search{key} -H 'Content-Type: application/json' \\
    -d '{{"query": "What do I like to eat?"}}'
look: {url}/inspect   docs: {url}/docs   stop: Ctrl-C"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedStore:
    """What is served, and where."""

    store: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Directory or Lance URI; else EKPHORY_STORE."),
    ] = None
    catalog: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Projects and keys; by default in the store's folder."),
    ] = None
    embedder: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Directory or /v1/embeddings URL; else the bundled."),
    ] = None
    host: Annotated[
        str | None,
        typer.Option(metavar="H", help="Address [127.0.0.1]; any but a loopback one needs a key."),
    ] = None
    port: Annotated[
        int | None, typer.Option(metavar="N", help="Port [8080]; 0 for any that is free.")
    ] = None
    workers: Annotated[int, typer.Option(metavar="N", help="Processes that answer.")] = 1
    require_key: Annotated[
        bool, typer.Option("--require-key", help="Need a key on a loopback address too.")
    ] = False
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Web page that may ask from a browser. Repeatable."),
    ] = None
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Proxy, or network of proxies, whose X-Forwarded-For is believed. Repeatable.",
        ),
    ] = None


_limit = partial(typer.Option, metavar="N", rich_help_panel="Limits")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How much is taken at a time."""

    body_bytes: Annotated[int | None, _limit(help="Largest body [8 MiB].")] = None
    documents: Annotated[int | None, _limit(help="Documents a reranking [1000].")] = None
    batch: Annotated[int | None, _limit(help="Texts an embedding request [2048].")] = None
    concurrency: Annotated[int | None, _limit(help="Reads, and writes, under way [512].")] = None
    per_second: Annotated[float | None, _limit(help="Requests a second of one key [any].")] = None
    body_seconds: Annotated[float | None, _limit(help="Seconds a body may take [60].")] = None
    header_seconds: Annotated[
        float | None, _limit(help="Seconds a request's head may take [20].")
    ] = None
    values: Annotated[int | None, _limit(help="Values in a body [50000].")] = None
    threads: Annotated[int | None, _limit(help="Reads worked on at once [8].")] = None
    write_threads: Annotated[int | None, _limit(help="Writes worked on at once [4].")] = None


@command
def serve(served: ServedStore, load: LoadOptions, output: OutputOptions) -> None:
    """Serve a store over HTTP: MemMachine's REST API, reranking and embeddings.

    The log, one JSON object a line, goes to standard error.
    """
    options = make_server_options(served, load)
    from ekphory.server.serving import serve as run

    with say_stopped():
        run(options, on_listening=partial(print_listening, output))


def make_server_options(served: ServedStore, load: LoadOptions) -> ServerOptions:
    """Return the options of a server, its key from the environment.

    Raises:
        InvalidInput: One cannot be used.
        MissingExtra: What a server needs is not installed.
    """
    if not all(map(find_spec, _PACKAGES)):
        raise MissingExtra("server", "ekphory serve")
    from ekphory.server.options import GivenKey, Limits, ServerOptions
    from ekphory.service.configuration import read_places

    settings = read_settings()
    places = read_places(settings)
    return ServerOptions(
        store=served.store or settings.store,
        catalog=served.catalog or places.sessions,
        embedder=served.embedder,
        host=served.host or places.host,
        port=places.port if served.port is None else served.port,
        workers=served.workers,
        require_key=served.require_key,
        key=GivenKey.of(settings.serve_key) if settings.serve_key else None,
        origins=tuple(served.cors_origin or ()),
        trusted_proxies=tuple(served.trusted_proxy or ()),
        limits=Limits(**{name: value for name, value in asdict(load).items() if value is not None}),
    )


def print_listening(output: OutputOptions, listening: Listening) -> None:
    """Tell where a server listens, and how to try it."""
    key = " -H 'Authorization: Bearer ek_…'" if listening.needs_key else ""
    shown = f"ekphory serves {listening.store} on {listening.url}\n"
    print_result(output, listening, shown + _TRY.format(url=listening.url, key=key))


@contextmanager
def say_stopped() -> Iterator[None]:
    """Let Ctrl-C end a server, with a word about what is on disk."""
    try:
        yield
    except KeyboardInterrupt:
        message_console().print("Stopped. Every acknowledged write is on disk.", style="dim")


_DEFAULT_PORT = 8090
_http_option = partial(typer.Option, rich_help_panel="Over HTTP")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTools:
    """Which tools are offered, and by which way."""

    tools: Annotated[
        Literal["ekphory", "agents", "memmachine"],
        typer.Option(
            help="ekphory's own six tools; agents: these and those about what changed; or "
            "MemMachine's three by their names."
        ),
    ] = "ekphory"
    transport: Annotated[
        Literal["stdio", "http"],
        typer.Option(help="stdio for a client that starts this command, http for streamable HTTP."),
    ] = "stdio"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    """Where streamable HTTP is served, and to whom."""

    host: Annotated[
        str | None,
        _http_option(metavar="H", help="Address [127.0.0.1]; any but a loopback one needs a key."),
    ] = None
    port: Annotated[
        int | None, _http_option(metavar="N", help="Port [8090]; 0 for any that is free.")
    ] = None
    catalog: Annotated[
        Path | None,
        _http_option(
            metavar="FILE", help="Where keys and features are; by default in the store's folder."
        ),
    ] = None
    require_key: Annotated[
        bool, _http_option("--require-key", help="Need a key on a loopback address too.")
    ] = False
    cors_origin: Annotated[
        list[str] | None,
        _http_option(metavar="URL", help="Web page that may ask from a browser. Repeatable."),
    ] = None


@command
def mcp(
    offered: OfferedTools, address: HttpAddress, where: StoreOptions, output: OutputOptions
) -> None:
    """Offer the memories of one scope as tools, over the Model Context Protocol.

    The scope is fixed here, or by the access key of an HTTP request; no model can change it. Over
    stdio, standard output carries the protocol alone, and a resident process serves where one runs;
    where none does, the log goes to standard error.
    """
    settings = settings_for(where)
    with say_stopped():
        if offered.transport == "stdio":
            _check_unused(address, offered)
            _serve_stdio(settings, offered, address)
        else:
            _serve_http(settings, offered, address, output)


def _check_unused(address: HttpAddress, offered: OfferedTools) -> None:
    """Check that nothing is given that would have no effect over stdio."""
    used = {"catalog"} if offered.tools == "memmachine" else set()
    for name, value in asdict(address).items():
        if value not in (None, False, []) and name not in used:
            raise InvalidInput(
                name, value, "has no meaning over stdio", "Add --transport http, or leave it out"
            )


@dataclass(frozen=True, slots=True)
class StdioSession:
    """What is offered to the process at the other end of two pipes.

    Attributes:
        settings: The store, its models, and the scope that every call is bound to.
        toolset: Which tools are offered.
        catalog: File of the catalog; None for one in the store's directory.
    """

    settings: Settings
    toolset: Toolset
    catalog: Path | None


SESSION_TAKER: ContextVar[Callable[[StdioSession], None] | None] = ContextVar(
    "SESSION_TAKER", default=None
)
"""Takes a session in place of this process's own pipes; the resident process sets it."""


def _serve_stdio(settings: Settings, offered: OfferedTools, address: HttpAddress) -> None:
    session = StdioSession(settings, offered.tools, address.catalog)
    take = SESSION_TAKER.get()
    if take is not None:
        take(session)
        return
    try:
        from ekphory.mcp_server.transports import serve_stdio
    except ModuleNotFoundError as error:
        raise MissingExtra("mcp", "ekphory mcp") from error
    serve_stdio(session.settings, session.toolset, catalog=session.catalog)


def _serve_http(
    settings: Settings, offered: OfferedTools, address: HttpAddress, output: OutputOptions
) -> None:
    try:
        from ekphory.mcp_server.transports import PATH, HttpOptions, serve_http
        from ekphory.server.options import ServerOptions
    except ModuleNotFoundError as error:
        raise MissingExtra("mcp", "ekphory mcp --transport http") from error
    options = HttpOptions(
        settings=settings,
        toolset=offered.tools,
        server=ServerOptions(
            store=settings.store,
            catalog=address.catalog,
            host=address.host or "127.0.0.1",
            port=_DEFAULT_PORT if address.port is None else address.port,
            require_key=address.require_key,
            origins=tuple(address.cors_origin or ()),
        ),
    )

    def tell(listening: Listening) -> None:
        url = listening.url + PATH
        found = {"url": url, "store": listening.store, "needs_key": listening.needs_key}
        shown = f"ekphory offers {listening.store} on {url}   stop: Ctrl-C"
        print_result(output, found, shown)

    serve_http(options, on_listening=tell)


_COLUMNS = ("id", "name", "org", "project", "rights", "created_at", "revoked_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogOptions:
    """Whose keys."""

    store: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="The store that is served; else EKPHORY_STORE."),
    ] = None
    catalog: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="As given to `ekphory serve`."),
    ] = None


@command
def create_key(
    where: CatalogOptions,
    output: OutputOptions,
    name: Annotated[str, typer.Option(help="What you call it.")] = "",
    org: Annotated[str | None, typer.Option(help="Only for this organisation.")] = None,
    project: Annotated[str | None, typer.Option(help="Only for this project of it.")] = None,
    rights: Annotated[
        str, typer.Option(help="read, write, or admin; each includes the former.")
    ] = "write",
) -> None:
    """Make a key. It is shown this once: the catalog keeps only a digest of it."""
    with _open_keys(where) as keys:
        made = keys.create(name=name, org=org, project=project, rights=cast("Rights", rights))
    if output.json:
        print_json({"key": made.text, **cast("dict[str, object]", to_plain_data(made.key))})
        return
    result_console().print(made.text, soft_wrap=True)
    message_console().print("Keep it: it cannot be shown again.", style="yellow")


@command
def list_keys(where: CatalogOptions, output: OutputOptions) -> None:
    """List the keys, revoked ones too; never the keys themselves."""
    with _open_keys(where) as keys:
        found = keys.all()
    table = Table(*_COLUMNS)
    for key in found:
        table.add_row(*(str(getattr(key, column) or "") for column in _COLUMNS))
    print_result(output, {"keys": found}, table)


@command
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As `ekphory keys list` says.")],
    where: CatalogOptions,
    output: OutputOptions,
) -> None:
    """Let a key be worth nothing from now on; a running server knows at once."""
    with _open_keys(where) as keys:
        keys.revoke(key_id)
    print_result(output, {"revoked": key_id}, f"{key_id} is revoked.")


@contextmanager
def _open_keys(where: CatalogOptions) -> Iterator[AccessKeys]:
    from ekphory.catalog.access_keys import AccessKeys
    from ekphory.catalog.database import Database
    from ekphory.service.handles import catalog_file

    store = where.store or read_settings().store
    database = Database(catalog_file(store, where.catalog))
    try:
        yield AccessKeys(database)
    finally:
        database.close()


# `ekphory daemon status` and `stop`: the resident process of the command line.

_DAEMON_SECONDS = 10.0


@command
def show_daemon(output: OutputOptions) -> None:
    """Say whether a resident process answers commands, and what it holds open."""
    status = _ask_daemon("status")
    shown = "No resident process is running; the next command starts one."
    if status["running"]:
        stores = ", ".join(status["stores"]) or "no store"
        shown = (
            f"Process {status['pid']} has answered {status['requests']:,} commands, holds open "
            f"{stores}, and was last asked {status['idle_s']:.0f} s ago."
        )
    print_result(output, status, shown)


@command
def stop_daemon(output: OutputOptions) -> None:
    """End the resident process, after the command that it is running."""
    status = _ask_daemon("stop")
    shown = "No resident process is running."
    if status["running"]:
        shown = f"Process {status['pid']} ends."
    print_result(output, status | {"running": False}, shown)


def _ask_daemon(verb: str) -> dict[str, Any]:
    try:
        return resident.ask({verb: True}, seconds=_DAEMON_SECONDS)
    except resident.NoResident:
        return {"running": False}
