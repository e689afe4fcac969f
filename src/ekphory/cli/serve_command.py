"""`ekphory serve`: the store over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json
from ekphory.cli.options import OutputOptions
from ekphory.config import read_settings
from ekphory.errors import MissingExtra

if TYPE_CHECKING:
    from ekphory.server.serving import Listening

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
    from ekphory.server.given_key import GivenKey
    from ekphory.server.options import Limits, ServerOptions
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
