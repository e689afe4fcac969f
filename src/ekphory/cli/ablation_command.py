"""`ekphory eval ablation`: what each stage is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json, write_json
from ekphory.cli.options import FileOutputOptions
from ekphory.cli.progress import step_bar
from ekphory.config import read_settings

if TYPE_CHECKING:
    from ekphory.evaluation.ablation import Ablation

_HEADING = """# What each stage is worth

The default pipeline with one thing changed at a time; differences are to the default, with their
95 % interval and the p-value of a paired randomisation test. Made by

    {command}

"""


@command
def ablation(
    data: Annotated[
        list[Path],
        typer.Option(
            metavar="PATH", help="LoCoMo's file, a conversation or a BEIR folder; repeatable."
        ),
    ],
    output: FileOutputOptions,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the tables to this Markdown file.")
    ] = None,
) -> None:
    """Change one stage of the default pipeline at a time, and measure the difference."""
    from ekphory.evaluation.ablation_table import ablation_table

    found: list[Ablation] = []
    for each in _measured(data):
        found.append(each)
        if not output.json:
            result_console().print(ablation_table(each))
        # After every dataset, so that whoever stops a long run keeps what it has found.
        if not output.json and output.json_file is not None:
            write_json(_reports(found), output.json_file)
        if markdown is not None:
            markdown.write_text(_document(data, found), encoding="utf-8")
    if output.json:
        print_json(_reports(found))
    elif markdown is not None:
        message_console().print(f"Written: {markdown}", style="dim")


def _measured(paths: Sequence[Path]) -> Iterator[Ablation]:
    from ekphory.evaluation.ablation import ablate, load_benchmark
    from ekphory.evaluation.variations import PRESET_VARIATIONS, STAGE_VARIATIONS
    from ekphory.models.configured import (
        configured_chat,
        configured_embedder,
        configured_reranker,
    )
    from ekphory.retrieval.resources import OptionalModels

    settings = read_settings()
    models = OptionalModels(reranker=configured_reranker(settings), chat=configured_chat(settings))
    embedder = configured_embedder(settings)
    for path in paths:
        with step_bar() as progress:
            found = ablate(
                load_benchmark(path),
                (*STAGE_VARIATIONS, *PRESET_VARIATIONS),
                embedder=embedder,
                models=models,
                progress=progress,
            )
        yield found


def _reports(found: Sequence[Ablation]) -> dict[str, object]:
    from ekphory.evaluation.report import to_json

    return {
        each.benchmark.dataset.name: [
            {"variation": row.variation.name} | to_json(row.report) for row in each.rows
        ]
        for each in found
    }


def _document(paths: Sequence[Path], found: Sequence[Ablation]) -> str:
    from ekphory.evaluation.ablation_table import ablation_markdown

    names = " ".join(f"--data {path.name}" for path in paths)
    heading = _HEADING.format(command=f"ekphory eval ablation {names}")
    return heading + "\n".join(map(ablation_markdown, found))
