"""The whole run: the model, the layouts, and the report."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

from ekphory_lab.bench.generate import BATCH, Corpus
from ekphory_lab.bench.layout import (
    PRODUCT,
    SYSTEMS,
    Layout,
    Told,
    filled_pool,
    model_setup,
    placed,
    plain,
    workspace,
)
from ekphory_lab.bench.measure import (
    BenchOptions,
    BenchReport,
    EmbeddingSpeed,
    Latency,
    Launcher,
    Setup,
    SizeReport,
    SystemReport,
    Worker,
    in_child,
    machine,
    versions,
)
from ekphory_lab.evaluation.tables import ReportTable

# The report for people, as text in tables: what was measured, and the conditions.

_MEBIBYTE = 2**20
_NOTHING = "-"

_ROWS: Mapping[str, tuple[str, str]] = tomllib.loads(
    files("ekphory_lab.bench").joinpath("rows.toml").read_text(encoding="utf-8")
)
"""By label: how a figure is written, and where it stands in a report; of sizes the mebibytes."""


def _figure(system: SystemReport, place: str) -> float | None:
    value: Any = system
    for name in place.split("."):
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
    return value if value is None or "bytes" not in place else value / _MEBIBYTE


def report_tables(report: BenchReport) -> list[ReportTable]:
    """Show every size with its stages."""
    return [table for size in report.sizes for table in (size_table(size), stage_table(size))]


def size_table(size: SizeReport) -> ReportTable:
    """Show all systems with the same memories, a column each."""
    scopes = "one scope" if size.scopes == 1 else f"{size.scopes} scopes"
    rows = [
        (label, *(_format(_figure(system, place), form) for system in size.systems))
        for label, (form, place) in _ROWS.items()
    ]
    return ReportTable(
        title=f"{size.rows:,} memories in {scopes}",
        header=("", *(system.name for system in size.systems)),
        rows=tuple(row for row in rows if set(row[1:]) != {_NOTHING}),
    )


def stage_table(size: SizeReport) -> ReportTable:
    """Show where the first system's warm searches spend their time."""
    first = size.systems[0]
    return ReportTable(
        title=f"stages at {size.rows:,} memories",
        header=("stage", "p50 ms", "p95 ms"),
        rows=tuple(
            (stage, f"{latency.p50:.2f}", f"{latency.p95:.2f}")
            for stage, latency in first.stages.items()
        ),
    )


def conditions(report: BenchReport) -> list[str]:
    """Say on what machine, with what versions and options, what the model alone does, in lines."""
    model = report.embedding
    memory = None if model.peak_bytes is None else model.peak_bytes / _MEBIBYTE
    return [
        describe_machine(report.machine),
        ", ".join(f"{name} {version}" for name, version in report.versions.items()),
        f"seed {report.options['seed']}, k {report.options['k']}, "
        f"{report.options['queries']} queries, {report.seconds:.0f} s",
        f"{model.embedder}: {model.texts_per_second:.0f} passages/s in batches of 256, a query "
        f"p50 {model.query.p50:.1f} ms, p95 {model.query.p95:.1f} ms, "
        f"peak memory {_format(memory, ',.0f')} MiB",
    ]


def describe_machine(machine: Mapping[str, str | int | float]) -> str:
    """Say on what machine something was measured."""
    return (
        f"{machine['processor']}, {machine['usable_cores']} cores usable, {machine['system']}, "
        f"Python {machine['python']}, load {machine.get('load', _NOTHING)} at the start"
    )


def _format(value: float | None, form: str) -> str:
    return _NOTHING if value is None else format(value, form)


# The whole run.


def run_bench(
    options: BenchOptions, *, on_progress: Told, launch: Launcher = in_child
) -> BenchReport:
    """Measure everything that the options ask for.

    Args:
        options: What to measure.
        on_progress: Told in words what is being done.
        launch: How measuring processes are started.

    Raises:
        InvalidInput: The directory to keep is in use.
        BenchError: A measuring process failed.
    """
    began, described = time.perf_counter(), machine()
    with workspace(options.keep) as directory:
        setup = model_setup(options, directory)
        model = launch("model", setup)
        embedding = _measured_model(model, options, on_progress)
        setup = replace(setup, pool=filled_pool(model, options, on_progress))
        model.end()
        sizes = _layouts(options, setup, launch, on_progress)
    return BenchReport(
        machine=described,
        versions=versions(),
        options=plain(options),
        embedding=embedding,
        sizes=sizes,
        seconds=round(time.perf_counter() - began, 1),
    )


def _measured_model(model: Worker, options: BenchOptions, on_progress: Told) -> EmbeddingSpeed:
    on_progress("measuring the model alone")
    # Memories beyond all stores, and other questions, so that no cache can know them.
    first = 2 * options.n
    passages = model.call("measure", {"start": first, "stop": first + options.batches * BATCH})
    asked = Corpus(seed=options.seed + 1).queries(options.queries, rows=first)
    queries = model.call("queries", {"texts": [query.text for query in asked]})
    return EmbeddingSpeed(
        embedder=passages["embedder"],
        texts_per_second=round(passages["texts_per_second"], 1),
        query=Latency.of(queries["milliseconds"]),
        peak_bytes=passages["peak_bytes"],
    )


def _layouts(
    options: BenchOptions, setup: Setup, launch: Launcher, on_progress: Told
) -> tuple[SizeReport, ...]:
    reports: list[SizeReport] = []
    for scopes in options.scopes:
        store = placed(setup, f"{scopes}-scopes", scopes=scopes)
        systems = SYSTEMS if options.beside == "lancedb" else (PRODUCT,)
        layout = Layout(
            options, setup=store, systems=systems, launch=launch, on_progress=on_progress
        )
        reports += [layout.measure(size) for size in options.sizes()]
    return tuple(reports)
