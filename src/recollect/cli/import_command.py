"""`recollect import`: remember what a file, folder or export holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from recollect.cli.command import command
from recollect.cli.consoles import result_console
from recollect.cli.endings import FAILED
from recollect.cli.json_output import print_json
from recollect.cli.memory_printing import printable
from recollect.cli.open_store import open_for_writing
from recollect.cli.options import OutputOptions, StoreOptions
from recollect.cli.progress import running_note

if TYPE_CHECKING:
    from recollect.importers import ImportReport


@command
def import_records(
    path: Annotated[Path, typer.Argument(help="File, folder or export archive.")],
    where: StoreOptions,
    output: OutputOptions,
    input_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="locomo, jsonl, text, chatgpt or claude; found out when left out.",
        ),
    ] = None,
    failures: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to list what failed; else PATH.failed.jsonl beside it."
        ),
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="LoCoMo: import this conversation only.")
    ] = None,
) -> None:
    """Remember what a file, folder or export holds.

    Run again, after an interruption or later, it adds what is missing. The exit code is 1 when
    a record was refused; all others are imported.
    """
    from recollect.importers import import_path
    from recollect.importers.detect import choose_format

    # Looked at first, so that a misspelt path makes no store.
    chosen = choose_format(path, input_format)
    with open_for_writing(where) as memory, running_note("reading") as note:
        report = import_path(
            memory,
            path,
            format=chosen,
            failures_path=failures,
            on_progress=lambda so_far: note(_counts(so_far)),
            conversation=conversation,
        )
    if output.json:
        print_json(report)
    else:
        _print_report(report)
    if report.failed:
        raise typer.Exit(FAILED)


def _counts(report: ImportReport) -> str:
    return f"{report.added:,} added, {report.skipped:,} already there, {report.failed:,} failed"


def _print_report(report: ImportReport) -> None:
    console = result_console()
    console.print(f"{_counts(report)}.", soft_wrap=True)
    if report.failures_path is None:
        return
    for failure in report.examples:
        console.print(
            Text(f"  {printable(failure.place)}: {printable(failure.message)}", style="yellow"),
            soft_wrap=True,
        )
    console.print(f"All failures are listed in {report.failures_path}", soft_wrap=True)
