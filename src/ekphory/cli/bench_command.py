"""`ekphory bench`: measure speed, size and memory on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ekphory.cli.bench_output import show_report
from ekphory.cli.command import command
from ekphory.cli.options import EmbedderOption, FileOutputOptions
from ekphory.cli.progress import running_note
from ekphory.config import read_settings

if TYPE_CHECKING:
    from ekphory.bench.options import BenchOptions, PeerName


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
    from ekphory.bench.options import PEERS
    from ekphory.bench.report import conditions, report_tables
    from ekphory.bench.run import run_bench

    options = _options(asked, peers=PEERS if peers else ())
    with running_note("starting") as note:
        report = run_bench(options, on_progress=note)
    show_report(report, output, report_tables(report), conditions(report))


def _options(asked: BenchSettings, *, peers: tuple[PeerName, ...]) -> BenchOptions:
    from ekphory.bench.options import BenchOptions

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
