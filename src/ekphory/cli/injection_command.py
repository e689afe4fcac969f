"""`ekphory eval injection`: how well the injection filter tells orders from memories."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ekphory.cli.command import command
from ekphory.cli.consoles import result_console
from ekphory.cli.json_output import print_json
from ekphory.cli.options import OutputOptions


@command
def injection(
    data: Annotated[
        Path,
        typer.Option(metavar="FILE", help="JSON Lines with text, injection, kind and part."),
    ],
    output: OutputOptions,
    part: Annotated[
        str | None, typer.Option(help="Only lines of this part: development or held_out.")
    ] = None,
) -> None:
    """Count which labelled lines the injection filter catches, and which it wrongly drops."""
    from ekphory.prompting.injection_report import injection_report, read_labelled_lines

    report = injection_report(read_labelled_lines(data, part=part))
    if output.json:
        print_json(report)
        return
    console = result_console()
    console.print(f"precision {report.precision:.3f}, recall {report.recall:.3f}")
    false_alarms = [line for line, _ in report.false_alarms]
    for title, lines in (("missed", report.missed), ("false alarm", false_alarms)):
        for line in lines:
            console.print(f"{title}: {line.text}", markup=False, soft_wrap=True)
