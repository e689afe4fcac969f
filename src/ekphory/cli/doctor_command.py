"""`ekphory doctor`: the state of a store in words, and its repair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json
from ekphory.cli.open_store import open_existing, settings_for
from ekphory.cli.options import OutputOptions, StoreOptions
from ekphory.cli.progress import step_bar
from ekphory.store.findings import Finding, examine

if TYPE_CHECKING:
    from ekphory.memory import Memory
    from ekphory.store.store import Verification

_MARKS = {
    "fine": ("✓", "green"),
    "note": ("•", "cyan"),
    "repairable": ("!", "yellow"),
    "damaged": ("✗", "red"),
}
_IDS_NAMED = 20


@command
def doctor(
    where: StoreOptions,
    output: OutputOptions,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Merge files, drop old versions and rebuild indexes first."),
    ] = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Read every row too, and compare it with its checksum."),
    ] = False,
) -> None:
    """Say what is fine in a store and what is not.

    Reads the whole store, all scopes together, and changes nothing without --repair. The exit
    status is 1 if --verify finds damage.
    """
    path = settings_for(where).store
    with open_existing(where) as memory:
        if repair:
            message_console().print("Repairing; others may go on reading …", style="dim")
            memory.repair()
        verification = _verified(memory) if verify else None
        # What cannot be read has no measures; the verification has told.
        damaged = verification is not None and bool(verification.damage)
        health = None if damaged else memory.health()
    findings = () if health is None else examine(health)
    if output.json:
        healthy = not damaged and all(finding.state != "repairable" for finding in findings)
        print_json(
            {"store": path, "healthy": healthy, "repaired": repair}
            | {"health": health, "findings": findings}
            | ({"verification": verification} if verify else {})
        )
    else:
        _print_findings(path, findings, verification)
    if damaged:
        raise typer.Exit(1)


def _verified(memory: Memory) -> Verification:
    with step_bar() as show:
        return memory.verify(on_progress=lambda done, total: show("rows", done, total))


def _print_findings(
    path: str, findings: tuple[Finding, ...], verification: Verification | None
) -> None:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        mark, style = _MARKS[finding.state]
        table.add_row(Text(mark, style=style), Text(finding.sentence))
    for state, sentence in _verification_lines(verification):
        mark, style = _MARKS[state]
        table.add_row(Text(mark, style=style), Text(sentence))
    console = result_console()
    console.print(Text(path, style="bold"), soft_wrap=True)
    console.print(table)
    repairable = sum(finding.state == "repairable" for finding in findings)
    repairable += verification is not None and verification.unverified > 0
    if verification is not None and verification.damage:
        remedy = "Restore a backup with `ekphory restore`, or forget what is damaged."
        console.print(remedy, style="red")
    elif repairable:
        console.print(f"{repairable} to mend: run `ekphory doctor --repair`.", style="yellow")
    else:
        console.print("All is well.", style="green")


def _verification_lines(verification: Verification | None) -> Iterator[tuple[str, str]]:
    if verification is None:
        return
    for damage in verification.damage:
        ids = ", ".join(damage.ids[:_IDS_NAMED]) + (", …" if len(damage.ids) > _IDS_NAMED else "")
        rows = "1 row" if damage.rows == 1 else f"{damage.rows:,} rows"
        named = f" of the memories {ids}" if ids else ""
        where = damage.file or "A file that cannot be named"
        yield "damaged", f"{where}: {rows}{named}: {damage.problem}."
    if verification.unverified:
        yield (
            "repairable",
            f"{verification.unverified:,} of {verification.rows:,} rows have no checksum yet; "
            "a repair gives them one.",
        )
    elif not verification.damage:
        yield "fine", f"All {verification.rows:,} rows are what was written."
