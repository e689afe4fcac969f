"""The report for people, as text in tables."""

from __future__ import annotations

from collections.abc import Mapping

from ekphory.bench.report import ReportTable
from ekphory.bench.serving.load import Load
from ekphory.bench.serving.results import ServedLayout, ServingReport

_NOTHING = "-"
_HEADER = (
    *("", "callers", "a second", "p50 ms", "p95 ms", "p99 ms"),
    *("CPU ms, server", "CPU ms, clients", "no hits", "load"),
)


def serving_tables(report: ServingReport) -> list[ReportTable]:
    """Show a table for each layout: one caller, many, and with lowered limits."""
    return [_table(each) for each in report.layouts]


def serving_findings(report: ServingReport) -> list[str]:
    """Say in lines how the server compares with the searches in process, and on what machine."""
    lines = [line for each in report.layouts for line in _findings(each)]
    machine = report.machine
    conditions = (
        f"{machine['processor']}, {machine['usable_cores']} cores usable, {machine['system']}, "
        f"Python {machine['python']}, load {machine.get('load', _NOTHING)} at the start; "
        f"{report.options['threads']} threads, {report.options['workers']} processes of the server"
    )
    packages = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return [*lines, conditions, f"{packages}; {report.seconds:.0f} s"]


def _table(layout: ServedLayout) -> ReportTable:
    loads = (*layout.alone, *layout.together, *layout.mixed, *layout.overload)
    return ReportTable(
        title=f"{layout.rows:,} memories in {_named(layout)}",
        header=_HEADER,
        rows=tuple(_row(each) for each in loads),
    )


def _row(load: Load) -> tuple[str, ...]:
    return (
        load.name,
        str(load.callers),
        f"{load.per_second:,.0f}",
        *(f"{each:.1f}" for each in (load.p50, load.p95, load.p99)),
        _figure(load.server_cpu_ms),
        _figure(load.client_cpu_ms),
        _failed(load.failed),
        _figure(load.machine_load),
    )


def _findings(layout: ServedLayout) -> list[str]:
    shares = ", ".join(f"{share:.0%} of {name}" for name, share in layout.shares.items())
    unannounced = sum(each.unannounced for each in layout.overload)
    reads, writes = layout.mixed
    return [
        f"{_named(layout)}: the server listened after {layout.start_seconds:.1f} s "
        f"and answered after {layout.answer_seconds:.1f} s; "
        f"HTTP adds {layout.http_adds:.1f} ms to one caller's median; "
        f"throughput {shares}; refusals without Retry-After: {unannounced}; "
        f"of {writes.answered:,} acknowledged writes {layout.writes_lost:,} are lost and "
        f"{layout.writes_doubled:,} doubled; beside them p99 of a read is "
        f"{reads.p99 / reads.p50:.1f} times its p50"
    ]


def _named(layout: ServedLayout) -> str:
    return "one scope" if layout.scopes == 1 else f"{layout.scopes} scopes"


def _figure(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.1f}"


def _failed(failed: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} × {what}" for what, count in failed.items()) or "0"
