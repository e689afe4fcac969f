"""`ekphory eval`: measure retrieval on a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ekphory.agent.settings import ProviderName
from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json
from ekphory.cli.options import EmbedderOption, FileOutputOptions
from ekphory.cli.progress import Steps, step_bar
from ekphory.config import read_settings
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from ekphory.agent.settings import AgentSettings
    from ekphory.evaluation.commands import RunOptions
    from ekphory.evaluation.configuration_runs import ConfigurationRun
    from ekphory.evaluation.report import Report

_HEADING = """# Memory-Spark's configurations

Each of its thirty-six configurations beside A, vector search alone: the difference to A, and the
p-value of a paired randomisation test on that pair. Only A's times include embedding the question:
its vector is cached for the others. Embedder: {embedder}; reranker: {reranker}; language model:
{chat}. Made by

    {command}

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions:
    """What is measured, and what is shown and written."""

    system: Annotated[
        list[str] | None,
        typer.Option(
            help="ekphory, ekphory:PRESET, ekphory:PRESET:ignore (reads no time), bm25, "
            "dense, mean or rrf; repeatable, and the first is compared with the others."
        ),
    ] = None
    preset: Annotated[str | None, typer.Option(help="Short for --system ekphory:PRESET.")] = None
    embedder: EmbedderOption = None
    depth: Annotated[int, typer.Option(help="How many passages each search asks for.")] = 100
    category: Annotated[
        list[str] | None,
        typer.Option(help="Only questions of this category; repeatable, else the protocol's."),
    ] = None
    compare: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Compare with the JSON file of an earlier run."),
    ] = None
    show_misses: Annotated[
        bool, typer.Option("--show-misses", help="Show the questions that went wrong.")
    ] = False
    limit: Annotated[int, typer.Option(help="How many misses to show.")] = 20
    run: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write TREC run files and qrels to this folder."),
    ] = None
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the trace of every search, a JSON line each."),
    ] = None
    agent: Annotated[
        ProviderName | None,
        typer.Option(help="Measure the retrieval agent too, held by this provider."),
    ] = None


Measurement = Callable[["RunOptions"], Sequence["Report"]]
_Folder = Annotated[Path, typer.Option("--data", metavar="DIR", help="The benchmark's folder.")]
_LabelErrors = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="JSON list of questions with wrong labels; the figures are also given without them.",
    ),
]


@command
def locomo(
    data: Annotated[Path, typer.Option("--data", metavar="FILE", help="LoCoMo's own JSON file.")],
    asked: MeasureOptions,
    output: FileOutputOptions,
    label_errors: _LabelErrors = None,
) -> None:
    """Measure on LoCoMo's own file: every turn a memory, its evidence turns relevant."""
    from ekphory.evaluation.commands import run_locomo

    _measure(
        lambda options: run_locomo(data, label_errors=label_errors, options=options), asked, output
    )


@command
def conversation(
    data: _Folder,
    asked: MeasureOptions,
    output: FileOutputOptions,
    label_errors: _LabelErrors = None,
    phrasings: Annotated[
        str,
        typer.Option(
            help="first: ask each question once; all: also in its other phrasings, each a query."
        ),
    ] = "first",
) -> None:
    """Measure on a folder with conversations as corpus, queries and qrels."""
    from ekphory.evaluation.commands import run_conversation

    _measure(
        lambda options: run_conversation(
            data, label_errors=label_errors, phrasings=phrasings, options=options
        ),
        asked,
        output,
    )


@command
def beir(
    data: _Folder,
    asked: MeasureOptions,
    output: FileOutputOptions,
    split: Annotated[str, typer.Option(help="Which qrels: test, dev or train.")] = "test",
    configs: Annotated[
        str | None,
        typer.Option(
            metavar="IDS",
            help="Memory-Spark's configurations, such as A,C,GATE-A, or all: ten hits each, "
            "beside vector-only A; takes EKPHORY_RERANKER and EKPHORY_CHAT_URL.",
        ),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the configurations' table to this Markdown file."),
    ] = None,
) -> None:
    """Measure on a folder in BEIR's form, such as SciFact."""
    from ekphory.evaluation.commands import run_beir

    if configs is not None:
        wanted = _Configurations(data=data, split=split, names=configs, markdown=markdown)
        _measure_configurations(wanted, asked, output)
        return
    if markdown is not None:
        raise InvalidInput(
            "markdown", str(markdown), "is for configurations", "Name some with --configs"
        )
    _measure(lambda options: run_beir(data, split=split, options=options), asked, output)


@command
def multihop(data: _Folder, asked: MeasureOptions, output: FileOutputOptions) -> None:
    """Measure whether all passages are found that a multi-hop question needs."""
    from ekphory.evaluation.commands import run_multihop

    _measure(lambda options: run_multihop(data, options=options), asked, output)


def _measure(measure: Measurement, asked: MeasureOptions, output: FileOutputOptions) -> None:
    with step_bar() as progress:
        reports = measure(_run_options(asked, output, progress))
    if output.json:
        from ekphory.evaluation.report import to_json

        print_json({"reports": [to_json(report) for report in reports]})
        return
    _print_reports(reports, asked)
    written = (path for path in (output.json_file, asked.run, asked.trace) if path is not None)
    for path in written:
        message_console().print(f"Written: {path}", style="dim")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Configurations:
    """Which configurations are measured on what, and the Markdown file that is asked for."""

    data: Path
    split: str
    names: str
    markdown: Path | None

    @property
    def command_line(self) -> str:
        """What measures the same again."""
        split = "" if self.split == "test" else f" --split {self.split}"
        return f"ekphory eval beir --data {self.data.name}{split} --configs {self.names}"


def _measure_configurations(
    wanted: _Configurations, asked: MeasureOptions, output: FileOutputOptions
) -> None:
    from ekphory.evaluation.configuration_runs import (
        ConfigurationOptions,
        run_configurations,
        runs_json,
    )
    from ekphory.evaluation.configuration_table import configuration_table
    from ekphory.evaluation.configurations import configurations

    chosen = configurations(wanted.names.split(","))
    with step_bar() as progress:
        common = _run_options(asked, output, progress)
        options = ConfigurationOptions(
            embedder=common.embedder,
            models=common.models,
            json_file=common.json_file,
            progress=progress,
        )
        runs = run_configurations(wanted.data, chosen, split=wanted.split, options=options)
    if wanted.markdown is not None:
        wanted.markdown.parent.mkdir(parents=True, exist_ok=True)
        wanted.markdown.write_text(_document(wanted, runs), encoding="utf-8")
    if output.json:
        print_json(runs_json(runs))
        return
    result_console().print(configuration_table(runs))
    written = (path for path in (output.json_file, wanted.markdown) if path is not None)
    for path in written:
        message_console().print(f"Written: {path}", style="dim")


def _document(wanted: _Configurations, runs: Sequence[ConfigurationRun]) -> str:
    from ekphory.evaluation.configuration_table import configuration_markdown

    baseline = runs[0].report
    models = {} if baseline is None else baseline.configuration
    named = {name: models.get(name) or "none" for name in ("embedder", "reranker", "chat")}
    return _HEADING.format(command=wanted.command_line, **named) + configuration_markdown(runs)


def _run_options(asked: MeasureOptions, output: FileOutputOptions, progress: Steps) -> RunOptions:
    from ekphory.evaluation.commands import PRODUCT, RunOptions
    from ekphory.models.configured import configured_chat, configured_reranker
    from ekphory.models.loading import load_embedder
    from ekphory.retrieval.resources import OptionalModels

    product = PRODUCT if asked.preset is None else f"{PRODUCT}:{asked.preset}"
    settings = read_settings()
    embedder = asked.embedder or settings.embedder
    return RunOptions(
        systems=tuple(asked.system or [product]),
        embedder=None
        if embedder is None
        else load_embedder(
            embedder, model=settings.embedder_model, api_key=settings.embedder_api_key
        ),
        models=OptionalModels(
            reranker=configured_reranker(settings), chat=configured_chat(settings)
        ),
        depth=asked.depth,
        categories=None if asked.category is None else tuple(asked.category),
        json_file=None if output.json else output.json_file,
        run_folder=asked.run,
        trace_file=asked.trace,
        agent=None if asked.agent is None else _agent_settings(asked.agent),
        progress=progress,
    )


def _agent_settings(provider: ProviderName) -> AgentSettings:
    from ekphory.agent.configuration.reading import read_agent_settings

    return read_agent_settings(arguments={"agent_session_provider": provider})


def _print_reports(reports: Sequence[Report], asked: MeasureOptions) -> None:
    from ekphory.evaluation.commands import compare_reports, compare_with_file
    from ekphory.evaluation.tables import (
        agent_line,
        calibration_line,
        comparison_table,
        report_table,
        show_misses,
        summary_table,
    )

    console = result_console()
    console.print(summary_table(reports))
    for report in reports:
        console.print(report_table(report))
        for line in (calibration_line(report), agent_line(report)):
            if line is not None:
                console.print(line, soft_wrap=True)
    for comparison in compare_reports(reports):
        console.print(comparison_table(comparison))
    for comparison in compare_with_file(reports, asked.compare) if asked.compare else ():
        console.print(comparison_table(comparison))
    if asked.show_misses:
        console.print(show_misses(reports[0], limit=asked.limit))
