"""`ekphory bench`, `bench-server` and `bench-cluster`: speed, size and memory on this machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rich.box import SIMPLE_HEAD

from ekphory.cli.command import command, show_note
from ekphory.cli.options import EmbedderOption, FileOutputOptions
from ekphory.config import read_settings
from ekphory_lab.cli.reports import show_report


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Which memories, in which stores, with what.

    Attributes:
        n (--n): Memories in the largest store.
        scopes: Projects they are spread over; repeatable, 50 and 1 by default.
        k (--k -k): Hits asked for.
        seed: Decides every memory and question.
        embedded: Really embedded memories; more reuse their vectors with noise.
        cache (DIR): Where vectors are kept between runs.
        keep (DIR): Keep the stores in this directory.
    """

    n: int = 100_000
    scopes: list[int] | None = None
    k: int = 10
    seed: int = 7
    embedder: EmbedderOption = None
    embedded: int = 100_000
    cache: Path | None = None
    keep: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSettings:
    """How much is measured.

    Attributes:
        queries: Warm searches of each store.
        beside: A plain LanceDB loop on the same memories, in turn, or nothing.
    """

    queries: int = 200
    beside: Literal["lancedb", "nothing"] = "lancedb"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSettings:
    """How much is asked.

    Attributes:
        clients: How many ask at once.
        seconds: How long they ask.
        threads: Searches worked on at once, by the server and in process.
        workers: Processes of the server.
    """

    clients: int = 50
    seconds: float = 60.0
    threads: int = 4
    workers: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """What is stored and asked.

    Attributes:
        n (--n): Memories in the store.
        projects: Projects that they are spread over.
        shards: Of the store.
        queries: Warm searches.
        commits: Memories written one by one.
        delay: Milliseconds that each request to the object storage takes longer.
        k (--k -k): Hits asked for.
        seed: Decides every memory and question.
    """

    n: int = 20_000
    projects: int = 20
    shards: int = 4
    queries: int = 100
    commits: int = 50
    delay: float = 30.0
    k: int = 10
    seed: int = 7
    embedder: EmbedderOption = None


def _options(stores: StoreSettings, asked: BenchSettings | ServingSettings) -> dict[str, Any]:
    """Return the options as the benchmarks take them."""
    embedder = stores.embedder or read_settings().embedder or "bundled"
    scopes = tuple(stores.scopes or (50, 1))
    return asdict(stores) | asdict(asked) | {"embedder": embedder, "scopes": scopes}


@command
def bench(stores: StoreSettings, asked: BenchSettings, output: FileOutputOptions) -> None:
    """Measure writing, searching, size and memory beside a plain LanceDB loop.

    The memories are generated; the same seed gives the same ones. A run with 100,000 takes
    minutes to an hour, most of it embedding; later runs find their vectors in the cache.
    """
    from ekphory_lab.bench import measure, run

    with show_note("starting") as note:
        options = measure.BenchOptions(**_options(stores, asked))
        report = run.run_bench(options, on_progress=note)
    show_report(
        report, output, [*run.report_tables(report), *run.conditions(report)], box=SIMPLE_HEAD
    )


@command
def bench_server(stores: StoreSettings, asked: ServingSettings, output: FileOutputOptions) -> None:
    """Measure `ekphory serve` under load, beside the same searches in one process.

    A real server answers clients on this machine, which share its cores; then servers with
    lowered limits are overloaded. The memories are those of `ekphory bench`.
    """
    from ekphory_lab.bench import serving

    with show_note("starting") as note:
        options = serving.ServingOptions(**_options(stores, asked))
        report = serving.run_serving_bench(options, on_progress=note)
    tables, findings = serving.serving_tables(report), serving.serving_findings(report)
    show_report(report.to_dict(), output, [*tables, *findings], box=SIMPLE_HEAD)


@command
def bench_cluster(asked: ClusterSettings, output: FileOutputOptions) -> None:
    """Measure what a store of shards takes of object storage, memory and processors.

    The object storage is one of this machine that counts requests and delays each. What a million
    memories take is extrapolated from those that are written.
    """
    from ekphory_lab.bench import cluster

    embedder = asked.embedder or read_settings().embedder or "bundled"
    with show_note("starting") as note:
        options = cluster.ClusterBenchOptions(**asdict(asked) | {"embedder": embedder})
        report = cluster.run_cluster_bench(options, on_progress=note)
    table, findings = cluster.cluster_table(report), cluster.cluster_findings(report)
    show_report(asdict(report), output, [table, *findings], box=SIMPLE_HEAD)
