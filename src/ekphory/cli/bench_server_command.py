"""`ekphory bench-server`: measure the server under load on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ekphory.cli.bench_output import show_report
from ekphory.cli.command import command
from ekphory.cli.options import EmbedderOption, FileOutputOptions
from ekphory.cli.progress import running_note
from ekphory.config import read_settings

if TYPE_CHECKING:
    from ekphory.bench.serving.options import ServingOptions


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
    from ekphory.bench.serving.report import serving_findings, serving_tables
    from ekphory.bench.serving.run import run_serving_bench

    options = _options(asked)
    with running_note("starting") as note:
        report = run_serving_bench(options, on_progress=note)
    show_report(report.to_dict(), output, serving_tables(report), serving_findings(report))


def _options(asked: ServingSettings) -> ServingOptions:
    from ekphory.bench.serving.options import ServingOptions

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
