"""`ekphory bench` and `bench-server`: speed, size and memory on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich import box
from rich.table import Table

from ekphory.cli.command import command, message_console, result_console, show_note
from ekphory.cli.options import EmbedderOption, FileOutputOptions
from ekphory.cli.output import print_json, write_json
from ekphory.config import read_settings

if TYPE_CHECKING:
    from ekphory_lab.bench.measure import BenchOptions, PeerName
    from ekphory_lab.bench.run import ReportTable
    from ekphory_lab.bench.serving import ServingOptions


# How the results of a benchmark are shown: as tables, or as JSON.


def show_report(
    report: object, output: FileOutputOptions, tables: Iterable[ReportTable], lines: Iterable[str]
) -> None:
    """Print the whole report as JSON, or its tables and lines, and write it where that is wanted.

    Args:
        report: What JSON gets.
        output: What the user asked for.
        tables: What is shown instead.
        lines: Sentences beneath the tables.
    """
    if output.json:
        print_json(report)
        return
    if output.json_file is not None:
        write_json(report, output.json_file)
        message_console().print(f"Written: {output.json_file}", style="dim")
    for table in tables:
        result_console().print(_drawn(table))
    for line in lines:
        result_console().print(line, markup=False)


def _drawn(content: ReportTable) -> Table:
    table = Table(title=content.title, title_justify="left", box=box.SIMPLE_HEAD)
    for place, name in enumerate(content.header):
        table.add_column(name, justify="right" if place else "left")
    for row in content.rows:
        table.add_row(*row)
    return table


# `ekphory bench`: measure speed, size and memory on this machine.


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSettings:
    """How much is measured, with what, and where it is written."""

    n: Annotated[int, typer.Option("--n", help="Memories in the largest store.")] = 100_000
    scopes: Annotated[
        list[int] | None,
        typer.Option(help="Projects they are spread over; repeatable, 50 and 1 by default."),
    ] = None
    queries: Annotated[int, typer.Option(help="Warm searches of each store.")] = 200
    k: Annotated[int, typer.Option("--k", "-k", help="Hits asked for.")] = 10
    seed: Annotated[int, typer.Option(help="Decides every memory and question.")] = 7
    embedder: EmbedderOption = None
    embedded: Annotated[
        int, typer.Option(help="Really embedded memories; more reuse their vectors with noise.")
    ] = 100_000
    beside: Annotated[
        Literal["lancedb", "nothing"],
        typer.Option(help="A plain LanceDB loop on the same memories, in turn, or nothing."),
    ] = "lancedb"
    peer_n: Annotated[int, typer.Option(help="Memories that each other product gets.")] = 10_000
    torch_index: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Index of torch's CPU build, for the products that need torch; else pip's own, "
            "which on Linux may give the CUDA build of several gigabytes.",
        ),
    ] = None
    cache: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where vectors and environments are kept between runs."),
    ] = None
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the stores in this directory.")
    ] = None


@command
def bench(
    asked: BenchSettings,
    output: FileOutputOptions,
    peers: Annotated[
        bool,
        typer.Option(
            "--peers", help="Measure txtai, chromadb and mem0 too, in environments of their own."
        ),
    ] = False,
) -> None:
    """Measure writing, searching, size and memory beside a plain LanceDB loop.

    The memories are generated; the same seed gives the same ones. A run with 100,000 takes
    minutes to an hour, most of it embedding; later runs find their vectors in the cache.
    """
    from ekphory_lab.bench.measure import PEERS
    from ekphory_lab.bench.run import conditions, report_tables, run_bench

    options = _options(asked, peers=PEERS if peers else ())
    with show_note("starting") as note:
        report = run_bench(options, on_progress=note)
    show_report(report, output, report_tables(report), conditions(report))


def _options(asked: BenchSettings, *, peers: tuple[PeerName, ...]) -> BenchOptions:
    from ekphory_lab.bench.measure import BenchOptions

    return BenchOptions(
        n=asked.n,
        scopes=tuple(asked.scopes or (50, 1)),
        queries=asked.queries,
        k=asked.k,
        seed=asked.seed,
        embedder=asked.embedder or read_settings().embedder or "bundled",
        embedded=asked.embedded,
        beside=asked.beside,
        peers=peers,
        peer_n=asked.peer_n,
        torch_index=asked.torch_index,
        cache=asked.cache,
        keep=asked.keep,
    )


# `ekphory bench-server`: measure the server under load on this machine.


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSettings:
    """How much is asked, of how large a store."""

    n: Annotated[int, typer.Option("--n", help="Memories in the store.")] = 100_000
    scopes: Annotated[
        list[int] | None,
        typer.Option(help="Projects they are spread over; repeatable, 50 and 1 by default."),
    ] = None
    clients: Annotated[int, typer.Option(help="How many ask at once.")] = 50
    writers: Annotated[
        int, typer.Option(help="How many of them write, while the load is mixed.")
    ] = 10
    seconds: Annotated[float, typer.Option(help="How long they ask.")] = 60.0
    k: Annotated[int, typer.Option("--k", "-k", help="Hits asked for.")] = 10
    threads: Annotated[
        int, typer.Option(help="Searches worked on at once, by the server and in process.")
    ] = 4
    workers: Annotated[int, typer.Option(help="Processes of the server.")] = 1
    seed: Annotated[int, typer.Option(help="Decides every memory and question.")] = 7
    embedder: EmbedderOption = None
    embedded: Annotated[
        int, typer.Option(help="Really embedded memories; more reuse their vectors with noise.")
    ] = 100_000
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where vectors are kept between runs.")
    ] = None
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the stores in this directory.")
    ] = None


@command
def bench_server(asked: ServingSettings, output: FileOutputOptions) -> None:
    """Measure `ekphory serve` under load, beside the same searches in one process.

    A real server answers clients on this machine, which share its cores; then servers with
    lowered limits are overloaded. The memories are those of `ekphory bench`.
    """
    from ekphory_lab.bench.serving import run_serving_bench, serving_findings, serving_tables

    options = _server_options(asked)
    with show_note("starting") as note:
        report = run_serving_bench(options, on_progress=note)
    show_report(report.to_dict(), output, serving_tables(report), serving_findings(report))


def _server_options(asked: ServingSettings) -> ServingOptions:
    from ekphory_lab.bench.serving import ServingOptions

    return ServingOptions(
        n=asked.n,
        scopes=tuple(asked.scopes or (50, 1)),
        clients=asked.clients,
        writers=asked.writers,
        seconds=asked.seconds,
        k=asked.k,
        seed=asked.seed,
        embedder=asked.embedder or read_settings().embedder or "bundled",
        embedded=asked.embedded,
        threads=asked.threads,
        workers=asked.workers,
        cache=asked.cache,
        keep=asked.keep,
    )
