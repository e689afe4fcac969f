"""`ekphory eval probabilities`: whether what is said of the best hit is true."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json, write_json
from ekphory.cli.options import FileOutputOptions
from ekphory.cli.progress import step_bar
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from ekphory.evaluation.stated_probabilities import StatedProbabilities


@command
def probabilities(
    output: FileOutputOptions,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder that holds the folders of benchmarks; without it, statements alone.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only this set, `statements` or a folder's name; repeatable."),
    ] = None,
    preset: Annotated[
        list[str] | None, typer.Option(help="Repeatable; else balanced and accurate.")
    ] = None,
) -> None:
    """Compare the best hit's probability with how often it is right, with the bundled models."""
    from ekphory.evaluation.stated_probabilities import (
        dataset_scopes,
        known_sets,
        measure_probabilities,
        statement_scopes,
    )

    sets = {"statements": list(statement_scopes())}
    if data is not None:
        sets |= {name: list(dataset_scopes(each)) for name, each in known_sets(data).items()}
    for name in only or ():
        if name not in sets:
            raise InvalidInput("only", name, "is not a set", f"Choose from {', '.join(sets)}")
    chosen = {name: sets[name] for name in only or sets}
    with step_bar() as progress:
        found = measure_probabilities(
            chosen, presets=preset or ["balanced", "accurate"], progress=progress
        )
    if output.json:
        print_json({"sets": found})
        return
    result_console().print(_table(found))
    if output.json_file is not None:
        write_json({"sets": [asdict(each) for each in found]}, output.json_file)
        message_console().print(f"Written: {output.json_file}", style="dim")


def _table(found: list[StatedProbabilities]) -> Table:
    table = Table(title="the best hit's probability", title_justify="left")
    table.add_column("set")
    table.add_column("preset")
    for header in ("questions", "said", "right", "error", "below .2", "unanswered", "below .2"):
        table.add_column(header, justify="right")
    for each in found:
        empty = each.unanswered_empty
        table.add_row(
            each.name,
            each.preset,
            f"{each.questions:,}",
            f"{each.said:.3f}",
            f"{each.right:.3f}",
            f"{each.error:.3f}",
            f"{each.empty:.3f}",
            f"{each.unanswered:,}",
            "" if empty is None else f"{empty:.3f}",
        )
    return table
