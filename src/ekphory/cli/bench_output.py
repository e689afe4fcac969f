"""How the results of a benchmark are shown: as tables, or as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json, write_json
from ekphory.cli.options import FileOutputOptions

if TYPE_CHECKING:
    from ekphory.bench.report import ReportTable


def show_report(
    report: object, output: FileOutputOptions, tables: Iterable[ReportTable], lines: Iterable[str]
) -> None:
    """Print the whole report as JSON, or its tables and lines, and write it where that is wanted.

    Args:
        report: What JSON gets.
        output: What the user asked for.
        tables: What is shown instead.
        lines: Sentences beneath the tables.
    """
    if output.json:
        print_json(report)
        return
    if output.json_file is not None:
        write_json(report, output.json_file)
        message_console().print(f"Written: {output.json_file}", style="dim")
    for table in tables:
        result_console().print(_drawn(table))
    for line in lines:
        result_console().print(line, markup=False)


def _drawn(content: ReportTable) -> Table:
    table = Table(title=content.title, title_justify="left", box=box.SIMPLE_HEAD)
    for place, name in enumerate(content.header):
        table.add_column(name, justify="right" if place else "left")
    for row in content.rows:
        table.add_row(*row)
    return table
