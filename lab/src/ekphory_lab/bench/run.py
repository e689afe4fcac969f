"""The whole run: the model, the peers, the layouts, and the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

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
    WriteSpeed,
    in_child,
    machine,
    versions,
)
from ekphory_lab.bench.peers import PeerRun, measure_peers

# The report for people, as text in tables: what was measured, and the conditions.

_MEBIBYTE = 2**20
_NOTHING = "-"

_ROWS: tuple[tuple[str, Callable[[SystemReport], str]], ...] = (
    ("search p50, ms", lambda system: f"{system.warm.p50:.1f}"),
    ("search p95, ms", lambda system: f"{system.warm.p95:.1f}"),
    ("cold search p50, ms", lambda system: f"{system.cold.p50:.1f}"),
    ("cold search p95, ms", lambda system: f"{system.cold.p95:.1f}"),
    ("recall@10", lambda system: _share(system.recall, "10")),
    ("recall@100", lambda system: _share(system.recall, "100")),
    ("searches short of k", lambda system: _or_nothing(system.short)),
    ("writes/s with model", lambda system: _speed(system.write)),
    ("writes/s, vectors given", lambda system: _speed(system.fill)),
    ("upkeep of these, s", lambda system: f"{system.fill.upkeep_seconds:.1f}"),
    ("indexing beside, s", lambda system: f"{system.fill.index_seconds:.1f}"),
    ("one add p50, ms", lambda system: _latency(system.add, "p50")),
    ("one add p95, ms", lambda system: _latency(system.add, "p95")),
    ("last index, s", lambda system: _seconds(system.index_seconds)),
    ("indexed rows", lambda system: _or_nothing(system.index_rows)),
    ("data files", lambda system: _or_nothing(system.fragments)),
    ("versions kept", lambda system: _or_nothing(system.versions)),
    ("on disk, MiB", lambda system: _mebibytes(system.bytes)),
    ("peak memory, fill, MiB", lambda system: _mebibytes(system.peak_bytes.get("fill"))),
    ("peak memory, search, MiB", lambda system: _mebibytes(system.peak_bytes.get("search"))),
    ("peak memory, write, MiB", lambda system: _mebibytes(system.peak_bytes.get("write"))),
)


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table as text: the command line decides how it looks.

    Attributes:
        title: What was measured.
        header: Of the columns; the first names the rows.
        rows: As many cells each.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def report_tables(report: BenchReport) -> list[ReportTable]:
    """Show every size with its stages, and the peers."""
    tables = [table for size in report.sizes for table in (size_table(size), stage_table(size))]
    if report.peers is not None:
        beside = size_table(report.peers)
        title = f"{beside.title}; all get the vectors, and the model's time is added to each"
        tables.append(replace(beside, title=title))
    return tables


def size_table(size: SizeReport) -> ReportTable:
    """Show all systems with the same memories, a column each, with the ratios to the first."""
    scopes = "one scope" if size.scopes == 1 else f"{size.scopes} scopes"
    rows = [(label, *(shown(system) for system in size.systems)) for label, shown in _ROWS]
    others = [_NOTHING] * (len(size.systems) - 1)
    for step, milliseconds in size.systems[0].start_up.items():
        rows.append((f"fresh process: {step}, ms", f"{milliseconds:.0f}", *others))
    for measure in _measures(size.ratios):
        compared = [size.ratios[system.name].get(measure) for system in size.systems[1:]]
        rows.append((f"times better: {measure}", "1", *(_ratio(value) for value in compared)))
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
    machine, model = report.machine, report.embedding
    return [
        f"{machine['processor']}, {machine['usable_cores']} cores usable, {machine['system']}, "
        f"Python {machine['python']}, load {machine.get('load', _NOTHING)} at the start",
        ", ".join(f"{name} {version}" for name, version in report.versions.items()),
        f"seed {report.options['seed']}, k {report.options['k']}, "
        f"{report.options['queries']} queries, {report.seconds:.0f} s",
        f"{model.embedder}: {model.texts_per_second:.0f} passages/s in batches of 256, a query "
        f"p50 {model.query.p50:.1f} ms, p95 {model.query.p95:.1f} ms, "
        f"peak memory {_mebibytes(model.peak_bytes)} MiB",
        *(f"{name} was left out: {why}" for name, why in report.skipped.items()),
    ]


def _measures(ratios: Mapping[str, Mapping[str, float]]) -> Sequence[str]:
    return list(dict.fromkeys(measure for each in ratios.values() for measure in each))


def _latency(latency: Latency | None, name: str) -> str:
    return _NOTHING if latency is None else f"{getattr(latency, name):.1f}"


def _speed(speed: WriteSpeed | None) -> str:
    return _NOTHING if speed is None else f"{speed.per_second:,.0f}"


def _share(recall: Mapping[str, float], cutoff: str) -> str:
    return f"{recall[cutoff]:.3f}" if cutoff in recall else _NOTHING


def _seconds(seconds: float | None) -> str:
    return _NOTHING if seconds is None else f"{seconds:.1f}"


def _mebibytes(size: int | None) -> str:
    return _NOTHING if size is None else f"{size / _MEBIBYTE:,.0f}"


def _or_nothing(count: int | None) -> str:
    return _NOTHING if count is None else f"{count:,}"


def _ratio(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.2f}"


# The whole run: the model, the peers, the layouts.


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
        peers = _peers(options, setup, model, launch, on_progress)
        model.end()
        sizes = _layouts(options, setup, launch, on_progress)
    return BenchReport(
        machine=described,
        versions={**versions(), **peers.versions},
        options=plain(options),
        embedding=embedding,
        sizes=sizes,
        peers=peers.with_model(embedding),
        skipped=peers.skipped,
        seconds=round(time.perf_counter() - began, 1),
    )


def _measured_model(model: Worker, options: BenchOptions, on_progress: Told) -> EmbeddingSpeed:
    on_progress("measuring the model alone")
    # Memories beyond all stores, and other questions, so that no cache can know them.
    first = 2 * max(options.n, options.peer_n)
    passages = model.call("measure", {"start": first, "stop": first + options.batches * BATCH})
    asked = Corpus(seed=options.seed + 1).queries(options.queries, rows=first)
    queries = model.call("queries", {"texts": [query.text for query in asked]})
    return EmbeddingSpeed(
        embedder=passages["embedder"],
        texts_per_second=round(passages["texts_per_second"], 1),
        query=Latency.of(queries["milliseconds"]),
        peak_bytes=passages["peak_bytes"],
    )


def _peers(
    options: BenchOptions, setup: Setup, model: Worker, launch: Launcher, on_progress: Told
) -> PeerRun:
    if not options.peers:
        return PeerRun(None, {}, {})
    beside = placed(setup, "peers", scopes=options.scopes[0])
    return measure_peers(options, setup=beside, model=model, launch=launch, on_progress=on_progress)


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
