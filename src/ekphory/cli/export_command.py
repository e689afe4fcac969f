"""`ekphory export`: a scope's memories as JSON Lines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json
from ekphory.cli.memory_counts import counted_memories
from ekphory.cli.open_store import open_existing
from ekphory.cli.options import STANDARD_OUTPUT, OutputOptions, StoreOptions
from ekphory.cli.progress import step_bar
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from ekphory.exporting import ExportReport


@command
def export_memories(
    where: StoreOptions,
    output: OutputOptions,
    target: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Where to write; - for standard output."),
    ] = STANDARD_OUTPUT,
) -> None:
    """Write a scope's memories to JSON Lines, whole, with their earlier versions.

    `ekphory import` reads the file back without loss. A file appears when it is complete;
    one that is there already is replaced. What has expired or was forgotten is not in it.
    """
    to_file = target != STANDARD_OUTPUT
    if output.json and not to_file:
        raise InvalidInput(
            "target", "-", "standard output cannot carry a report besides", "Name a file"
        )
    with open_existing(where) as memory, step_bar() as show:
        report = memory.export(
            target if to_file else sys.stdout.buffer,
            on_progress=lambda done, total: show("memories", done, total),
        )
    if output.json:
        print_json(report)
    else:
        console = result_console() if to_file else message_console()
        console.print(_sentence(report), soft_wrap=True)


def _sentence(report: ExportReport) -> str:
    left_out = f"; {report.expired:,} expired left out" if report.expired else ""
    place = f" to {report.target}" if report.target is not None else ""
    counts = counted_memories(report.memories, report.versions)
    return f"{counts} exported{place}{left_out}."
