"""`ekphory doctor`, `reembed` and `pipeline`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import typer
from rich.table import Column, Table
from rich.text import Text

from ekphory import resident
from ekphory.cli.command import command, message_console, print_result, result_console, step_bar
from ekphory.cli.options import OutputOptions, StoreOptions, open_existing, settings_for
from ekphory.cli.output import make_table, number_column, print_json, word_column
from ekphory.config import read_settings
from ekphory.errors import InvalidInput, StoreWarning
from ekphory.scope import SCOPE_FIELDS

if TYPE_CHECKING:
    from ekphory.store.checks import Finding
    from ekphory.store.protocol import Verification


_MARKS = {
    "fine": ("✓", "green"),
    "note": ("•", "cyan"),
    **dict.fromkeys(("repairable", "wanting"), ("!", "yellow")),
    "damaged": ("✗", "red"),
}
_IDS_NAMED = 20


@command
def doctor(
    where: StoreOptions, output: OutputOptions, *, repair: bool = False, verify: bool = False
) -> None:
    """Say what is fine in a store and what is not.

    Reads the whole store, all scopes together, and changes nothing without --repair. The exit
    status is 1 if --verify finds damage.

    Args:
        repair: Merge files, drop old versions and rebuild indexes first.
        verify: Read every row too, and compare it with its checksum.
    """
    path = settings_for(where).store
    with open_existing(where) as memory:
        if repair:
            message_console().print("Repairing; others may go on reading …", style="dim")
            memory.repair()
        verification = None
        if verify:
            with step_bar() as show_rows:
                verification = memory.verify(on_progress=partial(show_rows, "rows"))
        # What cannot be read has no measures; the verification has told.
        damaged = verification is not None and bool(verification.damage)
        health = None if damaged else memory.health()
    # Its Arrow is slow to import, and the store has imported it by now.
    from ekphory.store.checks import examine

    findings = (*(() if health is None else examine(health)), *_look_at_daemon(path))
    if output.json:
        healthy = not damaged and all(finding.state in ("fine", "note") for finding in findings)
        print_json(
            {"store": path, "healthy": healthy, "repaired": repair}
            | {"health": health, "findings": findings}
            | ({"verification": verification} if verify else {})
        )
    else:
        _print_findings(path, findings, verification)
    if damaged:
        raise typer.Exit(1)


@command
def reembed(
    where: StoreOptions, output: OutputOptions, *, undo: bool = False, drop_previous: bool = False
) -> None:
    """Embed a whole store anew with the present model, or the one that --embedder names.

    Others may search and write meanwhile. When it breaks off, run it again: it goes on.

    Args:
        undo: Go back to the vectors of the model before.
        drop_previous: Only remove the vectors of the model before.
    """
    for name in SCOPE_FIELDS:
        if (given := getattr(where, name)) is not None:
            problem = "names a part of the store, which is embedded as a whole"
            raise InvalidInput(f"--{name}", given, problem, "Leave it out")
    if undo and drop_previous:
        problem = "cannot stand beside --drop-previous"
        raise InvalidInput("--undo", True, problem, "Give one of them")
    with warnings.catch_warnings():
        # That the model is another one is why it is run.
        warnings.simplefilter("ignore", StoreWarning)
        with open_existing(where) as memory, step_bar() as show_memories:
            show = partial(show_memories, "memories")
            if drop_previous:
                report = memory.drop_previous_vectors()
            elif undo:
                report = memory.undo_reembed(on_progress=show)
            else:
                report = memory.reembed(on_progress=show)
    lines = [f"The vectors are of {report.embedder}."]
    if not drop_previous:
        counts = f"{report.embedded:,} of {report.memories:,} memories and earlier versions"
        lines.insert(0, f"{counts} were embedded.")
    if report.unembedded:
        lines.append(f"{report.unembedded:,} have none, and are found by their words alone.")
    if report.previous is not None:
        lines.append(f"Those of {report.previous} are kept for `ekphory reembed --undo`.")
    print_result(output, report, "\n".join(lines))


def _print_findings(
    path: str, findings: tuple[Finding, ...], verification: Verification | None
) -> None:
    table = Table.grid(word_column(), Column(overflow="fold"), padding=(0, 1))
    said = [(finding.state, finding.sentence) for finding in findings]
    for state, sentence in (*said, *_describe_verification(verification)):
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
    elif all(finding.state != "wanting" for finding in findings):
        console.print("All is well.", style="green")


def _look_at_daemon(store: str) -> Iterator[Finding]:
    from ekphory.store.checks import Finding

    refused = resident.find_obstacle()
    if refused is not None and resident.is_wanted() and "://" not in store:
        sentence = f"Commands start slowly, as no resident process can be used. {refused}"
        yield Finding("resident process", "note", sentence)


def _describe_verification(verification: Verification | None) -> Iterator[tuple[str, str]]:
    if verification is None:
        return
    for damage in verification.damage:
        ids = ", ".join(damage.ids[:_IDS_NAMED]) + (", …" if len(damage.ids) > _IDS_NAMED else "")
        rows = "1 row" if damage.rows == 1 else f"{damage.rows:,} rows"
        named = f" of the memories {ids}" if ids else ""
        where = damage.file or "A file that cannot be named"
        yield "damaged", f"{where}: {rows}{named}: {damage.problem}."
    if verification.unverified:
        unverified = f"{verification.unverified:,} of {verification.rows:,} rows"
        yield "repairable", f"{unverified} have no checksum yet; a repair gives them one."
    elif not verification.damage:
        yield "fine", f"All {verification.rows:,} rows are what was written."


@command
def show(preset_name: str, output: OutputOptions) -> None:
    """Show the stages of a preset, in the order in which they run, with their settings.

    Args:
        preset_name (PRESET): Name of a preset; see pipeline list.
    """
    from ekphory.retrieval.pipeline import describe
    from ekphory.retrieval.presets import preset

    pipeline = preset(preset_name)
    stages = describe(pipeline)
    used = sum(stage.used for stage in stages)
    title = f"preset {pipeline.name}: {used} stages\n{pipeline.summary}"
    wide = [Column(name, ratio=1) for name in ("what it does", "settings")]
    table = make_table(title, number_column("#"), word_column("stage"), *wide)
    for stage in stages:
        cells = (stage.purpose, _format_settings(stage.settings)) if stage.used else ("–", "")
        style = "" if stage.used else "dim"
        table.add_row(str(stage.number), stage.name, *map(Text, cells), style=style)
    found = {"preset": pipeline.name, "summary": pipeline.summary, "stages": stages}
    print_result(output, found, table)


@command
def list_presets(output: OutputOptions) -> None:
    """List the presets."""
    from ekphory.retrieval.presets import PRESETS, preset

    default = preset(read_settings().preset).name

    presets = []
    table = make_table(None, word_column("preset"), word_column("stages"), Column(""))
    for pipeline in PRESETS.values():
        stages = [stage.name for stage in pipeline.stages]
        told = {"name": pipeline.name, "default": pipeline.name == default}
        presets.append(told | {"summary": pipeline.summary, "stages": stages})
        numbers = dict.fromkeys(str(stage.number) for stage in pipeline.stages)
        table.add_row(pipeline.name, " ".join(numbers), pipeline.summary)
    print_result(output, {"presets": presets}, table)


def _format_settings(settings: Mapping[str, object]) -> str:
    told = (f"{name.replace('_', ' ')} {_format_value(each)}" for name, each in settings.items())
    return ", ".join(told)


def _format_value(value: object) -> str:
    if isinstance(value, dict):
        return "{" + _format_settings(value) + "}"
    if isinstance(value, list):
        return (" to " if len(value) == 2 else " ").join(map(_format_value, value))
    return "none" if value is None else str(value)
