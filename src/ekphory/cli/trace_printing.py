"""A search's stages for people: what `search --explain` draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from ekphory.cli.memory_printing import printable
from ekphory.trace import StageTrace, Trace
from ekphory.types import Hit

_STATUS_STYLE = {"ran": "", "skipped": "dim", "degraded": "yellow"}


def stage_table(trace: Trace) -> Table:
    """Draw the stages in the order in which they ran, a line each."""
    table = Table(
        title=f"preset {trace.preset}: {len(trace.stages)} stages, {trace.milliseconds:.1f} ms",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("stage", no_wrap=True)
    table.add_column("in → out", justify="right", no_wrap=True)
    table.add_column("ms", justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("what it did", overflow="fold")
    for stage in trace.stages:
        table.add_row(*_cells(stage), style=_STATUS_STYLE[stage.status])
    return table


def score_table(hits: Sequence[Hit]) -> Table:
    """Draw the raw scores of every hit, a column for each that any of them has."""
    names = list(dict.fromkeys(name for hit in hits for name in hit.scores))
    table = Table(title="scores", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("id", overflow="fold")
    for rank, hit in enumerate(hits, start=1):
        values = (_number(hit.scores.get(name)) for name in names)
        table.add_row(str(rank), *values, Text(printable(hit.id)))
    return table


def _cells(stage: StageTrace) -> list[str]:
    return [
        str(stage.number),
        stage.name,
        f"{stage.candidates_in:,} → {stage.candidates_out:,}",
        f"{stage.milliseconds:.1f}",
        stage.status,
        _account(stage.reason, stage.detail),
    ]


def _account(reason: str | None, detail: Mapping[str, object]) -> str:
    noted = [f"{name.replace('_', ' ')} {_value(value)}" for name, value in detail.items()]
    return ", ".join([reason, *noted] if reason else noted)


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
