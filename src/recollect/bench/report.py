"""The report for people: tables of what was measured, and the conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from recollect.bench.results import BenchReport, Latency, SizeReport, SystemReport, WriteSpeed

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
    ("on disk, MiB", lambda system: _mebibytes(system.bytes)),
    ("peak memory, fill, MiB", lambda system: _mebibytes(system.peak_bytes.get("fill"))),
    ("peak memory, search, MiB", lambda system: _mebibytes(system.peak_bytes.get("search"))),
    ("peak memory, write, MiB", lambda system: _mebibytes(system.peak_bytes.get("write"))),
)


def report_view(report: BenchReport) -> Group:
    """Show the conditions, the model, every size with its stages, the peers, what is missing."""
    parts: list[Table | Text] = [_conditions(report)]
    for size in report.sizes:
        parts += [size_table(size), stage_table(size)]
    if report.peers is not None:
        parts.append(size_table(report.peers))
        parts.append(
            Text("Peers get the vectors; writes with the model add the model's time to each.")
        )
    parts += [Text(f"{name} was left out: {why}") for name, why in report.skipped.items()]
    return Group(*parts)


def size_table(size: SizeReport) -> Table:
    """Show all systems with the same memories, a column each, with the ratios to the first."""
    scopes = "one scope" if size.scopes == 1 else f"{size.scopes} scopes"
    table = Table(title=f"{size.rows:,} memories in {scopes}", title_justify="left")
    table.add_column("")
    for system in size.systems:
        table.add_column(Text(system.name), justify="right")
    for label, shown in _ROWS:
        cells = [shown(system) for system in size.systems]
        if any(cell != _NOTHING for cell in cells):
            table.add_row(label, *cells)
    for step, milliseconds in size.systems[0].start_up.items():
        table.add_row(f"fresh process: {step}, ms", f"{milliseconds:.0f}")
    table.add_section()
    for measure in _measures(size.ratios):
        compared = [size.ratios[system.name].get(measure) for system in size.systems[1:]]
        table.add_row(f"times better: {measure}", "1", *(_ratio(value) for value in compared))
    return table


def stage_table(size: SizeReport) -> Table:
    """Show where the first system's warm searches spend their time."""
    first = size.systems[0]
    table = Table(title=f"stages of {first.name}, ms", title_justify="left")
    for header in ("stage", "p50", "p95"):
        table.add_column(header, justify="left" if header == "stage" else "right")
    for stage, latency in first.stages.items():
        table.add_row(Text(stage), f"{latency.p50:.2f}", f"{latency.p95:.2f}")
    return table


def _conditions(report: BenchReport) -> Text:
    machine, model = report.machine, report.embedding
    lines = [
        f"{machine['processor']}, {machine['usable_cores']} cores usable, {machine['system']}, "
        f"Python {machine['python']}",
        ", ".join(f"{name} {version}" for name, version in report.versions.items()),
        f"seed {report.options['seed']}, k {report.options['k']}, "
        f"{report.options['queries']} queries, {report.seconds:.0f} s",
        f"{model.embedder}: {model.texts_per_second:.0f} passages/s in batches of 256, a query "
        f"p50 {model.query.p50:.1f} ms, p95 {model.query.p95:.1f} ms, "
        f"peak memory {_mebibytes(model.peak_bytes)} MiB",
    ]
    return Text("\n".join(lines))


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
