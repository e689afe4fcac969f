"""`ekphory bench`, `bench-server` and `bench-cluster`: speed, size and memory on this machine."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD

from ekphory.cli.command import command, show_note
from ekphory.cli.options import FileOutputOptions
from ekphory_lab.bench.options import BenchOptions, ClusterOptions, ServingOptions, StoreOptions
from ekphory_lab.cli.reports import show_report


@command
def bench(stores: StoreOptions, asked: BenchOptions, output: FileOutputOptions) -> None:
    """Measure writing, searching, size and memory beside a plain LanceDB loop.

    The memories are generated; the same seed gives the same ones. A run with 100,000 takes
    minutes to an hour, most of it embedding; later runs find their vectors in the cache.
    """
    from ekphory_lab.bench import run

    with show_note("starting") as note:
        report = run.run_bench(stores, asked, on_progress=note)
    tables, lines = run.report_tables(report), run.conditions(report)
    show_report(report, output, tables, lines, box=SIMPLE_HEAD)


@command
def bench_server(stores: StoreOptions, asked: ServingOptions, output: FileOutputOptions) -> None:
    """Measure `ekphory serve` under load, beside the same searches in one process.

    A real server answers clients on this machine, which share its cores; then servers with
    lowered limits are overloaded. The memories are those of `ekphory bench`.
    """
    from ekphory_lab.bench import run, serving

    with show_note("starting") as note:
        report = serving.run_serving_bench(stores, asked, on_progress=note)
    lines = [*map(serving.serving_finding, report.layouts), *run.conditions(report)]
    show_report(report, output, serving.serving_tables(report), lines, box=SIMPLE_HEAD)


@command
def bench_cluster(asked: ClusterOptions, output: FileOutputOptions) -> None:
    """Measure what a store of shards takes of object storage, memory and processors.

    The object storage is one of this machine that counts requests and delays each. What a million
    memories take is extrapolated from those that are written.
    """
    from ekphory_lab.bench import cluster, run

    with show_note("starting") as note:
        report = cluster.run_cluster_bench(asked, on_progress=note)
    lines = [*cluster.cluster_findings(report), *run.conditions(report)]
    show_report(report, output, [cluster.cluster_table(report)], lines, box=SIMPLE_HEAD)
