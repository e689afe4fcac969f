"""`ekphory bench` and `bench-server`: speed, size and memory on this machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.box import SIMPLE_HEAD

from ekphory.cli.command import command, show_note
from ekphory.cli.options import EmbedderOption, FileOutputOptions
from ekphory.config import read_settings
from ekphory_lab.cli.reports import show_report


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Which memories, in which stores, with what."""

    n: Annotated[int, typer.Option("--n", help="Memories in the largest store.")] = 100_000
    scopes: Annotated[
        list[int] | None,
        typer.Option(help="Projects they are spread over; repeatable, 50 and 1 by default."),
    ] = None
    k: Annotated[int, typer.Option("--k", "-k", help="Hits asked for.")] = 10
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

    def fields(self) -> dict[str, Any]:
        """Return the options as the benchmarks take them."""
        embedder = self.embedder or read_settings().embedder or "bundled"
        return asdict(self) | {"embedder": embedder, "scopes": tuple(self.scopes or (50, 1))}


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSettings(StoreSettings):
    """How much is measured."""

    queries: Annotated[int, typer.Option(help="Warm searches of each store.")] = 200
    beside: Annotated[
        Literal["lancedb", "nothing"],
        typer.Option(help="A plain LanceDB loop on the same memories, in turn, or nothing."),
    ] = "lancedb"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSettings(StoreSettings):
    """How much is asked."""

    clients: Annotated[int, typer.Option(help="How many ask at once.")] = 50
    seconds: Annotated[float, typer.Option(help="How long they ask.")] = 60.0
    threads: Annotated[
        int, typer.Option(help="Searches worked on at once, by the server and in process.")
    ] = 4
    workers: Annotated[int, typer.Option(help="Processes of the server.")] = 1


@command
def bench(asked: BenchSettings, output: FileOutputOptions) -> None:
    """Measure writing, searching, size and memory beside a plain LanceDB loop.

    The memories are generated; the same seed gives the same ones. A run with 100,000 takes
    minutes to an hour, most of it embedding; later runs find their vectors in the cache.
    """
    from ekphory_lab.bench.measure import BenchOptions
    from ekphory_lab.bench.run import conditions, report_tables, run_bench

    options = BenchOptions(**asked.fields())
    with show_note("starting") as note:
        report = run_bench(options, on_progress=note)
    show_report(report, output, [*report_tables(report), *conditions(report)], box=SIMPLE_HEAD)


@command
def bench_server(asked: ServingSettings, output: FileOutputOptions) -> None:
    """Measure `ekphory serve` under load, beside the same searches in one process.

    A real server answers clients on this machine, which share its cores; then servers with
    lowered limits are overloaded. The memories are those of `ekphory bench`.
    """
    from ekphory_lab.bench.serving import (
        ServingOptions,
        run_serving_bench,
        serving_findings,
        serving_tables,
    )

    options = ServingOptions(**asked.fields())
    with show_note("starting") as note:
        report = run_serving_bench(options, on_progress=note)
    show_report(
        report.to_dict(),
        output,
        [*serving_tables(report), *serving_findings(report)],
        box=SIMPLE_HEAD,
    )
