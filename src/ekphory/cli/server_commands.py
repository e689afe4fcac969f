"""`ekphory serve`, `mcp` and `keys`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer
from rich.table import Table

from ekphory.cli.command import command, message_console, result_console
from ekphory.cli.options import OutputOptions, StoreOptions, settings_for
from ekphory.cli.output import plain, print_json
from ekphory.config import read_settings
from ekphory.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from ekphory.catalog.access_keys import AccessKey, AccessKeys, Rights
    from ekphory.config import Settings
    from ekphory.server.serving import Listening


# `ekphory serve`: the store over HTTP.

_PACKAGES = ("fastapi", "openapi_ui_bundles", "prometheus_client", "uvicorn")
_LIMITS = "Limits"
_TRY = """\
try it:
  curl {url}/api/v2/memories{key} -H 'Content-Type: application/json' \\
    -d '{{"messages": [{{"content": "I like pizza"}}]}}'
  curl {url}/api/v2/memories/search{key} -H 'Content-Type: application/json' \\
    -d '{{"query": "What do I like to eat?"}}'
docs: {url}/docs   stop: Ctrl-C"""


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
        str, typer.Option(metavar="H", help="Address; any but a loopback one needs a key.")
    ] = "127.0.0.1"
    port: Annotated[int, typer.Option(metavar="N", help="Port; 0 for any that is free.")] = 8080
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How much is taken at a time."""

    body_bytes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Largest body [8 MiB].", rich_help_panel=_LIMITS),
    ] = None
    documents: Annotated[
        int | None,
        typer.Option(metavar="N", help="Documents a reranking [1000].", rich_help_panel=_LIMITS),
    ] = None
    batch: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Texts an embedding request [2048].", rich_help_panel=_LIMITS
        ),
    ] = None
    concurrency: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Reads, and writes, under way [512].", rich_help_panel=_LIMITS
        ),
    ] = None
    per_second: Annotated[
        float | None,
        typer.Option(
            metavar="N", help="Requests a second of one key [any].", rich_help_panel=_LIMITS
        ),
    ] = None
    body_seconds: Annotated[
        float | None,
        typer.Option(metavar="N", help="Seconds a body may take [60].", rich_help_panel=_LIMITS),
    ] = None
    header_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="N", help="Seconds a request's head may take [20].", rich_help_panel=_LIMITS
        ),
    ] = None
    values: Annotated[
        int | None,
        typer.Option(metavar="N", help="Values in a body [50000].", rich_help_panel=_LIMITS),
    ] = None
    threads: Annotated[
        int | None,
        typer.Option(metavar="N", help="Reads worked on at once [8].", rich_help_panel=_LIMITS),
    ] = None
    write_threads: Annotated[
        int | None,
        typer.Option(metavar="N", help="Writes worked on at once [4].", rich_help_panel=_LIMITS),
    ] = None


@command
def serve(served: ServedStore, load: LoadOptions, output: OutputOptions) -> None:
    """Serve a store over HTTP: MemMachine's REST API, reranking and embeddings.

    The log, one JSON object a line, goes to standard error.
    """
    if not all(map(find_spec, _PACKAGES)):
        raise MissingExtra("server", "ekphory serve")
    from ekphory.server.options import GivenKey, Limits, ServerOptions
    from ekphory.server.serving import serve as run

    settings = read_settings()
    limits = {name: getattr(load, name) for name in LoadOptions.__dataclass_fields__}
    options = ServerOptions(
        store=served.store or settings.store,
        catalog=served.catalog,
        embedder=served.embedder,
        host=served.host,
        port=served.port,
        workers=served.workers,
        require_key=served.require_key,
        key=GivenKey.of(settings.serve_key) if settings.serve_key else None,
        origins=tuple(served.cors_origin or ()),
        trusted_proxies=tuple(served.trusted_proxy or ()),
        limits=Limits(**{name: value for name, value in limits.items() if value is not None}),
    )

    def told(listening: Listening) -> None:
        if output.json:
            print_json(listening)
        else:
            _tell(listening)

    try:
        run(options, on_listening=told)
    except KeyboardInterrupt:
        message_console().print("Stopped. Every acknowledged write is on disk.", style="dim")


def _tell(listening: Listening) -> None:
    key = " -H 'Authorization: Bearer ek_…'" if listening.needs_key else ""
    console = result_console()
    console.print(f"ekphory serves {listening.store} on {listening.url}", soft_wrap=True)
    console.print(_TRY.format(url=listening.url, key=key), soft_wrap=True)


# `ekphory mcp`: memory as tools for agents, over the Model Context Protocol.

_HTTP = "Over HTTP"
_DEFAULT_PORT = 8090


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTools:
    """Which tools are offered, and by which way."""

    tools: Annotated[
        Literal["ekphory", "memmachine"],
        typer.Option(help="ekphory's own six tools, or MemMachine's three by their names."),
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
        typer.Option(
            metavar="H",
            help="Address [127.0.0.1]; any but a loopback one needs a key.",
            rich_help_panel=_HTTP,
        ),
    ] = None
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Port [8090]; 0 for any that is free.", rich_help_panel=_HTTP
        ),
    ] = None
    catalog: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where keys and features are; by default in the store's folder.",
            rich_help_panel=_HTTP,
        ),
    ] = None
    require_key: Annotated[
        bool,
        typer.Option(
            "--require-key", help="Need a key on a loopback address too.", rich_help_panel=_HTTP
        ),
    ] = False
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Web page that may ask from a browser. Repeatable.",
            rich_help_panel=_HTTP,
        ),
    ] = None


@command
def mcp(
    offered: OfferedTools, address: HttpAddress, where: StoreOptions, output: OutputOptions
) -> None:
    """Offer the memories of one scope as tools, over the Model Context Protocol.

    The scope is fixed here, or by the access key of an HTTP request; no model can change it. Over
    stdio, standard output carries the protocol alone. The log goes to standard error.
    """
    settings = settings_for(where)
    try:
        if offered.transport == "stdio":
            _check_unused(address, offered)
            _serve_stdio(settings, offered, address)
        else:
            _serve_http(settings, offered, address, output)
    except KeyboardInterrupt:
        message_console().print("Stopped. Every acknowledged write is on disk.", style="dim")


def _check_unused(address: HttpAddress, offered: OfferedTools) -> None:
    """Check that nothing is given that would have no effect over stdio."""
    used = {"catalog"} if offered.tools == "memmachine" else set()
    for name in HttpAddress.__dataclass_fields__:
        value = getattr(address, name)
        if value not in (None, False, []) and name not in used:
            raise InvalidInput(
                name, value, "has no meaning over stdio", "Add --transport http, or leave it out"
            )


def _serve_stdio(settings: Settings, offered: OfferedTools, address: HttpAddress) -> None:
    try:
        from ekphory.mcp_server.transports import serve_stdio
    except ModuleNotFoundError as error:
        raise MissingExtra("mcp", "ekphory mcp") from error
    serve_stdio(settings, offered.tools, catalog=address.catalog)


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

    def told(listening: Listening) -> None:
        url = listening.url + PATH
        if output.json:
            print_json({"url": url, "store": listening.store, "needs_key": listening.needs_key})
        else:
            result_console().print(
                f"ekphory offers {listening.store} on {url}   stop: Ctrl-C", soft_wrap=True
            )

    serve_http(options, on_listening=told)


# `ekphory keys`: who may ask a server.

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
    ] = ("write"),
) -> None:
    """Make a key. It is shown this once: the catalog keeps only a digest of it."""
    with _keys(where) as keys:
        made = keys.create(name=name, org=org, project=project, rights=cast("Rights", rights))
    if output.json:
        print_json({"key": made.text, **cast("dict[str, object]", plain(made.key))})
        return
    result_console().print(made.text, soft_wrap=True)
    message_console().print("Keep it: it cannot be shown again.", style="yellow")


@command
def list_keys(where: CatalogOptions, output: OutputOptions) -> None:
    """List the keys, revoked ones too; never the keys themselves."""
    with _keys(where) as keys:
        found = keys.all()
    if output.json:
        print_json({"keys": found})
    else:
        result_console().print(_table(found))


@command
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As `ekphory keys list` says.")],
    where: CatalogOptions,
    output: OutputOptions,
) -> None:
    """Let a key be worth nothing from now on; a running server knows at once."""
    with _keys(where) as keys:
        keys.revoke(key_id)
    if output.json:
        print_json({"revoked": key_id})
    else:
        result_console().print(f"{key_id} is revoked.")


@contextmanager
def _keys(where: CatalogOptions) -> Iterator[AccessKeys]:
    from ekphory.catalog.access_keys import AccessKeys
    from ekphory.catalog.database import Database
    from ekphory.service.handles import catalog_file

    store = where.store or read_settings().store
    database = Database(catalog_file(store, where.catalog))
    try:
        yield AccessKeys(database)
    finally:
        database.close()


def _table(keys: list[AccessKey]) -> Table:
    table = Table(*_COLUMNS)
    for key in keys:
        table.add_row(*(str(getattr(key, column) or "") for column in _COLUMNS))
    return table
