"""`ekphory eval rerank`: rerankers over the same candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json, write_json
from ekphory.cli.options import FileOutputOptions
from ekphory.cli.progress import step_bar
from ekphory.config import read_settings
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from ekphory.evaluation.reranking.benchmark import RerankReport
    from ekphory.evaluation.reranking.tables import ShownTable
    from ekphory.models.reranker import RerankingModel


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
            raise InvalidInput("top", self.top, "nothing would be reranked", "Give 1 or more.")
        if not 0 <= self.share <= 1:
            raise InvalidInput("share", self.share, "is no share", "Give a number from 0 to 1.")


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
    from ekphory.evaluation.reranking.report_files import report_json, write_markdown

    asked.check()
    # Written after every set, so that whoever stops a long run keeps what it has found.
    for report in _measured(data, asked):
        if output.json_file is not None and not output.json:
            write_json(report_json(report), output.json_file)
        if markdown is not None:
            write_markdown(report, markdown, command=_command_line(data, asked))
    if output.json:
        print_json(report_json(report))
        return
    _print(report)
    for path in (output.json_file, markdown):
        if path is not None:
            message_console().print(f"Written: {path}", style="dim")


def _measured(data: Sequence[Path], asked: RerankChoices) -> Iterator[RerankReport]:
    from ekphory.evaluation.ablation import load_benchmark
    from ekphory.evaluation.reranking.benchmark import OwnSets, RerankOptions, run_benchmark
    from ekphory.evaluation.reranking.contenders import load_contenders
    from ekphory.evaluation.reranking.dialogue import load_dialogue_set
    from ekphory.evaluation.reranking.languages import load_language_set
    from ekphory.models.configured import configured_embedder
    from ekphory.models.loading import load_embedder

    names = [name.strip() for name in asked.rerankers.split(",") if name.strip()]
    contenders = load_contenders(names, load=_loaded)
    datasets = [load_benchmark(path).dataset for path in data]
    with step_bar() as progress:
        options = RerankOptions(
            embedder=configured_embedder(read_settings()) or load_embedder(None),
            top=asked.top,
            first_stage_share=asked.share,
            candidates=asked.candidates,
            progress=progress,
        )
        own = OwnSets(load_dialogue_set(), load_language_set())
        yield from run_benchmark(datasets, own, contenders, options)


def _command_line(data: Sequence[Path], asked: RerankChoices) -> str:
    paths = " ".join(f"--data {path.name}" for path in data)
    share = f" --share {asked.share}" if asked.share else ""
    return f"ekphory eval rerank {paths} --rerankers {asked.rerankers} --top {asked.top}{share}"


def _loaded(spec: str) -> RerankingModel:
    from ekphory.models.configured import named_reranker

    return named_reranker(spec, read_settings())


def _print(report: RerankReport) -> None:
    from ekphory.evaluation.reranking.tables import rerank_tables

    for table in rerank_tables(report):
        result_console().print(_shown(table))


def _shown(table: ShownTable) -> Table:
    shown = Table(title=table.title, caption=table.note or None)
    shown.title_justify = shown.caption_justify = "left"
    for place, header in enumerate(table.headers):
        is_name = place == 0
        shown.add_column(header, justify="left" if is_name else "right", no_wrap=is_name)
    for row in table.rows:
        shown.add_row(*map(Text, row))
    return shown
