"""`ekphory pipeline`: which presets there are, and what their stages do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from ekphory.cli.command import command
from ekphory.cli.consoles import result_console
from ekphory.cli.json_output import print_json
from ekphory.cli.options import OutputOptions
from ekphory.config import read_settings


@command
def show(
    preset_name: Annotated[
        str, typer.Argument(metavar="PRESET", help="Name of a preset; see pipeline list.")
    ],
    output: OutputOptions,
) -> None:
    """Show the stages of a preset, in the order in which they run, with their settings."""
    from ekphory.retrieval.description import describe
    from ekphory.retrieval.presets import preset

    pipeline = preset(preset_name)
    stages = describe(pipeline)
    if output.json:
        print_json({"preset": pipeline.name, "summary": pipeline.summary, "stages": stages})
        return
    used = sum(stage.used for stage in stages)
    title = f"preset {pipeline.name}: {used} stages\n{pipeline.summary}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("stage", no_wrap=True)
    table.add_column("what it does", ratio=1)
    table.add_column("settings", ratio=1)
    for stage in stages:
        cells = (stage.purpose, _settings(stage.settings)) if stage.used else ("–", "")
        style = "" if stage.used else "dim"
        table.add_row(str(stage.number), stage.name, *map(Text, cells), style=style)
    result_console().print(table)


@command
def list_presets(output: OutputOptions) -> None:
    """List the presets."""
    from ekphory.retrieval.presets import PRESETS, preset

    default = preset(read_settings().preset).name

    if output.json:
        presets = [
            {
                "name": pipeline.name,
                "default": pipeline.name == default,
                "summary": pipeline.summary,
                "stages": [stage.name for stage in pipeline.stages],
            }
            for pipeline in PRESETS.values()
        ]
        print_json({"presets": presets})
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("preset", no_wrap=True)
    table.add_column("stages", no_wrap=True)
    table.add_column("")
    for pipeline in PRESETS.values():
        numbers = dict.fromkeys(str(stage.number) for stage in pipeline.stages)
        table.add_row(pipeline.name, " ".join(numbers), pipeline.summary)
    result_console().print(table)


def _settings(settings: Mapping[str, object]) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {_value(value)}" for name, value in settings.items()
    )


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{" + _settings(value) + "}"
    if isinstance(value, list):
        return " to ".join(map(_value, value)) if len(value) == 2 else " ".join(map(_value, value))
    return "none" if value is None else str(value)
