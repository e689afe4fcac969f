"""Tables of a report, for the terminal and as Markdown, and how their figures are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from rich.box import HEAVY_HEAD, Box
from rich.table import Table
from rich.text import Text

from ekphory_lab.evaluation.metrics import Estimate, Latency, PairedTest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

NOTHING = "-"


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table as text.

    Attributes:
        title: What it shows.
        header: Names of the columns.
        rows: As many cells each.
        note: What must be known to read it; may be empty.
        names: How many of the columns, from the left, hold names; the others hold figures.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    names: int = 1

    def markdown(self) -> str:
        """Return it as a Markdown section."""
        rule = ["---" if place < self.names else "---:" for place in range(len(self.header))]
        lines = [f"## {self.title}\n", *([f"{self.note}\n"] if self.note else [])]
        for row in (self.header, rule, *self.rows):
            lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |")
        return "\n".join(lines) + "\n"

    def for_terminal(self, box: Box = HEAVY_HEAD) -> Table:
        """Return it as rich draws it."""
        table = Table(title=self.title, caption=self.note or None, box=box)
        table.title_justify = table.caption_justify = "left"
        for place, name in enumerate(self.header):
            is_name = place < self.names
            table.add_column(name, justify="left" if is_name else "right", no_wrap=place == 0)
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table


def records_table(
    title: str,
    records: Iterable[Mapping[str, object] | DataclassInstance],
    *,
    note: str = "",
    names: int = 1,
) -> ReportTable:
    """Return a table with a line for each record and a column for each value that fits into a cell.

    A record is a mapping or a dataclass; what one lacks stays empty.
    """
    rows = [_cells_of(record) for record in records]
    header = tuple(dict.fromkeys(name for row in rows for name in row))
    cells = (tuple(row.get(name, "") for name in header) for row in rows)
    return ReportTable(title, header, tuple(cells), note, names)


def _cells_of(record: Mapping[str, object] | DataclassInstance) -> dict[str, str]:
    if not isinstance(record, Mapping):
        named = {each.name: getattr(record, each.name) for each in fields(record)}
        record = {name.replace("_", " "): value for name, value in named.items()}
    return {
        name: _FORMS[type(value)](value) for name, value in record.items() if type(value) in _FORMS
    }


def write_markdown(file: Path, heading: str, tables: Iterable[ReportTable], end: str = "") -> None:
    """Write tables beneath a heading, and perhaps an end below them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(table.markdown() for table in tables)
    file.write_text(f"{heading}{text}{end}", encoding="utf-8")


def format_figure(value: float) -> str:
    """Return a figure without a leading zero: `.125`, `-.125`."""
    text = f"{abs(value):.3f}".removeprefix("0")
    return f"-{text}" if value < 0 else text


def format_difference(value: float) -> str:
    """Return a figure with its sign."""
    sign = "-" if round(value, 3) < 0 else "+"
    return sign + format_figure(abs(value))


def format_interval(estimate: Estimate) -> str:
    """Return the ends of an estimate's confidence interval."""
    return f"{format_figure(estimate.low)} to {format_figure(estimate.high)}"


def format_estimate(estimate: Estimate) -> str:
    """Return a mean with its confidence interval."""
    return f"{format_figure(estimate.mean)} ({format_interval(estimate)})"


def format_test(test: PairedTest) -> str:
    """Return a difference with its interval and its p-value."""
    low, high = format_difference(test.low), format_difference(test.high)
    stated = "p < .001" if test.p_value < 0.001 else f"p = {format_figure(test.p_value)}"
    return f"{format_difference(test.difference)} ({low} to {high}), {stated}"


def _format_number(value: float) -> str:
    if not math.isfinite(value):
        return NOTHING
    return format_figure(value) if abs(value) <= 1 else f"{value:,.1f}"


_FORMS: Mapping[type, Callable[[Any], str]] = {
    str: str,
    bool: lambda value: "yes" if value else "no",
    int: "{:,}".format,
    float: _format_number,
    NoneType: lambda _: NOTHING,
    Estimate: format_estimate,
    PairedTest: format_test,
    Latency: lambda value: f"{value.p50:.1f} / {value.p95:.1f}",
}
"""How a value is written, by its type; what has too many parts for a cell has none."""
