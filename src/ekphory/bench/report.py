"""The report for people, as text in tables: what was measured, and the conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ekphory.bench.results import BenchReport, Latency, SizeReport, SystemReport, WriteSpeed

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
