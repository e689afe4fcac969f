"""Tables of a report, for the terminal and as Markdown, and how their figures are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.box import HEAVY_HEAD, Box
from rich.table import Table
from rich.text import Text

from ekphory_lab.evaluation.metrics import Estimate, PairedTest


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


def write_markdown(file: Path, heading: str, tables: Iterable[ReportTable], end: str = "") -> None:
    """Write tables beneath a heading, and perhaps an end below them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(table.markdown() for table in tables)
    file.write_text(f"{heading}{text}{end}", encoding="utf-8")


def format_figure(value: float, digits: int = 3) -> str:
    """Return a figure without a leading zero: `.125`, `-.125`."""
    text = f"{abs(value):.{digits}f}".removeprefix("0")
    return f"-{text}" if value < 0 else text


def format_difference(value: float, digits: int = 3) -> str:
    """Return a figure with its sign."""
    sign = "-" if round(value, digits) < 0 else "+"
    return sign + format_figure(abs(value), digits)


def format_interval(estimate: Estimate) -> str:
    """Return the ends of an estimate's confidence interval."""
    return f"{format_figure(estimate.low)} to {format_figure(estimate.high)}"


def format_estimate(estimate: Estimate) -> str:
    """Return a mean with its confidence interval."""
    return f"{format_figure(estimate.mean)} ({format_interval(estimate)})"


def format_test(test: PairedTest | None, digits: int = 3) -> tuple[str, str, str]:
    """Return a difference, its interval and its p-value; nothing where nothing was compared."""
    if test is None:
        return "", "", ""
    ends = (format_difference(end, digits) for end in (test.low, test.high))
    return format_difference(test.difference, digits), " to ".join(ends), format_p_value(test)


def format_p_value(test: PairedTest) -> str:
    """Return the p-value of a paired test."""
    return "<.001" if test.p_value < 0.001 else format_figure(test.p_value)
