"""`recollect doctor`: the state of a store in words, and its repair."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from recollect.cli.command import command
from recollect.cli.consoles import message_console, result_console
from recollect.cli.json_output import print_json
from recollect.cli.open_store import open_existing, settings_for
from recollect.cli.options import OutputOptions, StoreOptions
from recollect.store.findings import Finding, examine

_MARKS = {"fine": ("✓", "green"), "note": ("•", "cyan"), "repairable": ("!", "yellow")}


@command
def doctor(
    where: StoreOptions,
    output: OutputOptions,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Merge files, drop old versions and rebuild indexes first."),
    ] = False,
) -> None:
    """Say what is fine in a store and what is not.

    Reads the whole store, all scopes together, and changes nothing without --repair.
    """
    path = settings_for(where).store
    with open_existing(where) as memory:
        if repair:
            message_console().print("Repairing; others may go on reading …", style="dim")
            memory.repair()
        health = memory.health()
    findings = examine(health)
    if output.json:
        healthy = all(finding.state != "repairable" for finding in findings)
        print_json(
            {"store": path, "healthy": healthy, "repaired": repair}
            | {"health": health, "findings": findings}
        )
    else:
        _print_findings(path, findings)


def _print_findings(path: str, findings: tuple[Finding, ...]) -> None:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        mark, style = _MARKS[finding.state]
        table.add_row(Text(mark, style=style), Text(finding.sentence))
    console = result_console()
    console.print(Text(path, style="bold"), soft_wrap=True)
    console.print(table)
    repairable = sum(finding.state == "repairable" for finding in findings)
    if repairable:
        console.print(f"{repairable} to mend: run `recollect doctor --repair`.", style="yellow")
    else:
        console.print("All is well.", style="green")
