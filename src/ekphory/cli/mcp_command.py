"""`ekphory mcp`: memory as tools for agents, over the Model Context Protocol."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json
from ekphory.cli.open_store import settings_for
from ekphory.cli.options import OutputOptions, StoreOptions
from ekphory.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from ekphory.config import Settings
    from ekphory.server.serving import Listening

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
        from ekphory.mcp_server.stdio import serve_stdio
    except ModuleNotFoundError as error:
        raise MissingExtra("mcp", "ekphory mcp") from error
    serve_stdio(settings, offered.tools, catalog=address.catalog)


def _serve_http(
    settings: Settings, offered: OfferedTools, address: HttpAddress, output: OutputOptions
) -> None:
    try:
        from ekphory.mcp_server.streamable_http import PATH, HttpOptions, serve_http
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
