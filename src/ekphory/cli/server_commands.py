"""`ekphory serve`, `mcp`, `keys`, `daemon` and `cluster`."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, redirect_stdout, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import typer
from rich.table import Table

from ekphory import resident
from ekphory.cli.command import (
    FAILED,
    command,
    message_console,
    print_result,
    result_console,
    show_note,
)
from ekphory.cli.options import OutputOptions, StoreOptions, catalog_for, settings_for
from ekphory.cli.output import print_json
from ekphory.cli.transfer_commands import print_import_report
from ekphory.config import read_settings
from ekphory.errors import InvalidInput, MissingExtra
from ekphory.scope import DEFAULT_NAME, Scope
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
    -d {said}
  curl {url}/api/v2/memories/search{key} -H 'Content-Type: application/json' \\
    -d {asked}
"""
_SAID = {"messages": [{"content": "I like pizza"}]}
_ASKED = {"query": "What do I like to eat?"}
_PAGES = "look: {url}/inspect   docs: {url}/docs   stop: Ctrl-C"
_PAGES_OF_CLUSTER = "look: {url}/inspect   docs: {url}/docs   metrics: {url}/metrics   stop: Ctrl-C"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedStore:
    """What is served, and where.

    Attributes:
        store (DIR): Directory or Lance URI; else EKPHORY_STORE.
        catalog (FILE): Projects and keys; else that of EKPHORY_CONFIG, else in the store's folder.
        embedder (MODEL): Directory or /v1/embeddings URL; else the bundled.
        host (H): Address [127.0.0.1]; any but a loopback one needs a key.
        port (N): Port [8080]; 0 for any that is free.
        workers (N): Processes that answer.
        require_key: Need a key on a loopback address too.
        cors_origin (URL): Web page that may ask from a browser. Repeatable.
        trusted_proxy (ADDRESS): Proxy, or network of proxies, whose X-Forwarded-For is believed.
            Repeatable.
        audit (FILE): Where to note who read, wrote and forgot what: hashes of ids and queries.
    """

    store: str | None = None
    catalog: Path | None = None
    embedder: str | None = None
    host: str | None = None
    port: int | None = None
    workers: int = 1
    require_key: bool = False
    cors_origin: list[str] | None = None
    trusted_proxy: list[str] | None = None
    audit: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How much is taken at a time.

    Attributes:
        body_bytes (N): Largest body [8 MiB].
        documents (N): Documents a reranking [1000].
        batch (N): Texts an embedding request [2048].
        concurrency (N): Reads, and writes, under way [512].
        per_second (N): Requests a second of one key [any].
        org_per_second (N): Requests a second of one organisation [any].
        org_memories (N): Memories that one organisation may hold [any].
        shard_concurrency (N): Requests of one shard of a cluster under way [128].
        body_seconds (N): Seconds a body may take [60].
        header_seconds (N): Seconds a request's head may take [20].
        values (N): Values in a body [50000].
        threads (N): Reads worked on at once [8].
        write_threads (N): Writes worked on at once [4].
    """

    PANEL = "Limits"

    body_bytes: int | None = None
    documents: int | None = None
    batch: int | None = None
    concurrency: int | None = None
    per_second: float | None = None
    org_per_second: float | None = None
    org_memories: int | None = None
    shard_concurrency: int | None = None
    body_seconds: float | None = None
    header_seconds: float | None = None
    values: int | None = None
    threads: int | None = None
    write_threads: int | None = None


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
        audit=served.audit or (Path(settings.audit_log) if settings.audit_log else None),
        limits=Limits(**{name: value for name, value in asdict(load).items() if value is not None}),
    )


def print_listening(output: OutputOptions, listening: Listening, *, pages: str = _PAGES) -> None:
    """Tell where a server listens, how to try it, and which pages it has.

    Without a key, it is tried where the command line writes; a key may have a place of its own.
    """
    key, place = " -H 'Authorization: Bearer ek_…'", {}
    if not listening.needs_key:
        own, key = read_settings(), ""
        place = {"org_id": own.org or DEFAULT_NAME, "project_id": own.project or DEFAULT_NAME}
    said, asked = (shlex.quote(json.dumps({**place, **body})) for body in (_SAID, _ASKED))
    shown = f"ekphory serves {listening.store} on {listening.url}\n"
    tried = (_TRY + pages).format(url=listening.url, key=key, said=said, asked=asked)
    print_result(output, listening, shown + tried)


@contextmanager
def say_stopped() -> Iterator[None]:
    """Let Ctrl-C end a server, with a word about what is on disk."""
    try:
        yield
    except KeyboardInterrupt:
        message_console().print("Stopped. Every acknowledged write is on disk.", style="dim")


_DEFAULT_PORT = 8090


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTools:
    """Which tools are offered, and by which way.

    Attributes:
        tools: ekphory's own six tools; agents: these and those about what changed; or MemMachine's
            three by their names.
        transport: stdio for a client that starts this command, http for streamable HTTP.
    """

    tools: Literal["ekphory", "agents", "memmachine"] = "ekphory"
    transport: Literal["stdio", "http"] = "stdio"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    """Where streamable HTTP is served, and to whom.

    Attributes:
        host (H): Address [127.0.0.1]; any but a loopback one needs a key.
        port (N): Port [8090]; 0 for any that is free.
        catalog (FILE): Where keys and features are; else as for `ekphory serve`.
        require_key: Need a key on a loopback address too.
        cors_origin (URL): Web page that may ask from a browser. Repeatable.
    """

    PANEL = "Over HTTP"

    host: str | None = None
    port: int | None = None
    catalog: Path | None = None
    require_key: bool = False
    cors_origin: list[str] | None = None


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
            problem = "has no meaning over stdio"
            raise InvalidInput(name, value, problem, "Add --transport http, or leave it out")


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


_Taker = Callable[[StdioSession], None]
SESSION_TAKER: ContextVar[_Taker | None] = ContextVar("SESSION_TAKER", default=None)
"""Takes a session in place of this process's own pipes; the resident process sets it."""


def _serve_stdio(settings: Settings, offered: OfferedTools, address: HttpAddress) -> None:
    session = StdioSession(settings, offered.tools, catalog_for(address.catalog))
    if take := SESSION_TAKER.get():
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
        from ekphory.mcp_server.transports import PATH, serve_http
        from ekphory.server.options import ServerOptions
    except ModuleNotFoundError as error:
        raise MissingExtra("mcp", "ekphory mcp --transport http") from error
    server = ServerOptions(
        store=settings.store,
        catalog=catalog_for(address.catalog),
        host=address.host or "127.0.0.1",
        port=_DEFAULT_PORT if address.port is None else address.port,
        require_key=address.require_key,
        origins=tuple(address.cors_origin or ()),
    )

    def tell(listening: Listening) -> None:
        url = listening.url + PATH
        found = {"url": url, "store": listening.store, "needs_key": listening.needs_key}
        shown = f"ekphory offers {listening.store} on {url}   stop: Ctrl-C"
        print_result(output, found, shown)

    serve_http(settings, offered.tools, server=server, on_listening=tell)


_COLUMNS = ("id", "name", "org", "project", "rights", "created_at", "revoked_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogOptions:
    """Whose keys.

    Attributes:
        store (DIR): The store that is served; else EKPHORY_STORE.
        catalog (FILE): As given to `ekphory serve`; else as there.
    """

    store: str | None = None
    catalog: Path | None = None


@command
def create_key(
    where: CatalogOptions,
    output: OutputOptions,
    name: str = "",
    org: str | None = None,
    project: str | None = None,
    rights: str = "write",
) -> None:
    """Make a key. It is shown this once: the catalog keeps only a digest of it.

    Args:
        name: What you call it.
        org: Only for this organisation.
        project: Only for this project of it.
        rights: read, write, or admin; each includes the former.
    """
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
def revoke_key(key_id: str, where: CatalogOptions, output: OutputOptions) -> None:
    """Let a key be worth nothing from now on; a running server knows at once.

    Args:
        key_id (ID): As `ekphory keys list` says.
    """
    with _open_keys(where) as keys:
        keys.revoke(key_id)
    print_result(output, {"revoked": key_id}, f"{key_id} is revoked.")


@contextmanager
def _open_keys(where: CatalogOptions) -> Iterator[AccessKeys]:
    from ekphory.catalog.access_keys import AccessKeys
    from ekphory.catalog.database import Database
    from ekphory.service.handles import catalog_file

    store = where.store or read_settings().store
    with closing(Database(catalog_file(store, catalog_for(where.catalog)))) as database:
        yield AccessKeys(database)


# `ekphory daemon status` and `stop`: the resident process of the command line.

_DAEMON_SECONDS = 10.0


@command
def show_daemon(output: OutputOptions) -> None:
    """Say whether a resident process answers commands, and what it holds open, or why none can."""
    status = _ask_daemon("status")
    shown = "No resident process is running; the next command starts one."
    if not resident.is_wanted():
        shown = "No resident process is running, and EKPHORY_DAEMON=0 lets no command start one."
    if "refused" in status:
        shown = f"No resident process can be used. {status['refused']}"
    if status["running"]:
        stores = ", ".join(status["stores"]) or "no store"
        commands = "1 command" if status["requests"] == 1 else f"{status['requests']:,} commands"
        shown = (
            f"Process {status['pid']} has answered {commands}, holds open "
            f"{stores}, and was last asked {status['idle_s']:.0f} s ago."
        )
    print_result(output, status, shown)


@command
def stop_daemon(output: OutputOptions) -> None:
    """End the resident process, after the command that it is running."""
    status = _ask_daemon("stop")
    shown = status.get("refused", "No resident process is running.")
    if status["running"]:
        left = _await_end(status["pid"])
        ends = "is still closing what it holds open" if left["running"] else "has ended"
        shown = f"Process {status['pid']} {ends}."
        status |= {"running": left["running"]}
    print_result(output, status, shown)


def _await_end(pid: int) -> dict[str, Any]:
    """Wait until that process answers no more, since it may have stores to close; tell what is."""
    until = time.monotonic() + _DAEMON_SECONDS
    status: dict[str, Any] = {"running": True, "pid": pid}
    while status.get("pid") == pid and time.monotonic() < until:
        time.sleep(0.05)
        with suppress(resident.Unanswered):  # asked while it closed its socket
            status = _ask_daemon("status")
    return status


def _ask_daemon(verb: str) -> dict[str, Any]:
    try:
        return resident.ask({verb: True}, seconds=_DAEMON_SECONDS)
    except resident.NoResident:
        refused = resident.find_obstacle()
        return {"running": False} | ({"refused": refused} if refused else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFlags:
    """What a store of shards is made of, and on what it runs.

    Attributes:
        shards (N): Shards of a new store [16].
        cpus (N): Processors of this machine; by default all.
    """

    shards: int | None = None
    cpus: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkFlags:
    """Where a bulk import goes.

    Attributes:
        store (URI): s3://…, gs://…, az://…, or a directory that all share.
        org: Organisation of every record.
        project: Project of every record.
        failures (FILE): Where to list what failed; else ekphory-failed/PATH.jsonl beside it.
    """

    store: str
    org: str | None = None
    project: str | None = None
    failures: Path | None = None


@command
def import_in_bulk(
    uri: str, given: BulkFlags, cluster: ClusterFlags, output: OutputOptions
) -> None:
    """Remember what files hold, on all machines of a Ray cluster.

    Without `RAY_ADDRESS` all of it runs here. Run again, after an interruption or later, it adds
    what is missing. The exit code is 1 when a record was refused; all others are imported.

    Args:
        uri: File or folder of .jsonl or .parquet, here or on object storage.
    """
    from ekphory.cluster.bulk import BulkOptions
    from ekphory.cluster.bulk import import_in_bulk as run

    options = BulkOptions(
        store=given.store,
        shards=cluster.shards,
        scope=Scope(org=given.org, project=given.project),
        cpus=cluster.cpus,
        failures=given.failures,
    )
    with show_note("starting Ray") as note:
        report = run(
            uri,
            options,
            on_progress=lambda now: note(f"{now.added:,} added, {now.skipped:,} already there"),
        )
    print_import_report(report, output)
    if report.failed:
        raise typer.Exit(FAILED)


@command
def serve_cluster(
    served: ServedStore, load: LoadOptions, cluster: ClusterFlags, output: OutputOptions
) -> None:
    """Serve a store of shards over HTTP, on all machines of a Ray cluster.

    Without `RAY_ADDRESS` all of it runs here, in as many processes as --workers says. The store is
    made where there is none. It answers what `ekphory serve` does about memories and projects.
    """
    options = make_server_options(served, load)
    from ekphory.cluster.serving import ClusterOptions
    from ekphory.cluster.serving import serve_cluster as run

    with say_stopped(), ExitStack() as listened:

        def tell(listening: Listening) -> None:
            print_listening(output, listening, pages=_PAGES_OF_CLUSTER)
            # Ray goes on to tell of its workers, which is no part of the answer.
            listened.enter_context(redirect_stdout(sys.stderr))

        asked = ClusterOptions(
            server=options, shards=cluster.shards, replicas=options.workers, cpus=cluster.cpus
        )
        run(asked, on_listening=tell)
