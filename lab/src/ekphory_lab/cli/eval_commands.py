"""`ekphory eval`: measure retrieval on a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ekphory.agent.provider import ProviderName
from ekphory.cli.command import Steps, command, message_console, result_console, step_bar
from ekphory.cli.options import EmbedderOption, FileOutputOptions, OutputOptions
from ekphory.cli.output import print_json, write_json
from ekphory.config import read_settings
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from ekphory.agent.provider import AgentSettings
    from ekphory_lab.evaluation.ablation import Ablation
    from ekphory_lab.evaluation.commands import RunOptions
    from ekphory_lab.evaluation.configurations import ConfigurationRun
    from ekphory_lab.evaluation.cues import CueReport
    from ekphory_lab.evaluation.runner import Report
    from ekphory_lab.evaluation.stated_probabilities import StatedProbabilities


# `ekphory eval`: measure retrieval on a benchmark.

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
    from ekphory_lab.evaluation.commands import run_locomo

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
    from ekphory_lab.evaluation.commands import run_conversation

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
    from ekphory_lab.evaluation.commands import run_beir

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
    from ekphory_lab.evaluation.commands import run_multihop

    _measure(lambda options: run_multihop(data, options=options), asked, output)


def _measure(measure: Measurement, asked: MeasureOptions, output: FileOutputOptions) -> None:
    with step_bar() as progress:
        reports = measure(_run_options(asked, output, progress))
    if output.json:
        from ekphory_lab.evaluation.runner import to_json

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
    from ekphory_lab.evaluation.configurations import (
        ConfigurationOptions,
        configuration_table,
        configurations,
        run_configurations,
        runs_json,
    )

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
    from ekphory_lab.evaluation.configurations import configuration_markdown

    baseline = runs[0].report
    models = {} if baseline is None else baseline.configuration
    named = {name: models.get(name) or "none" for name in ("embedder", "reranker", "chat")}
    return _HEADING.format(command=wanted.command_line, **named) + configuration_markdown(runs)


def _run_options(asked: MeasureOptions, output: FileOutputOptions, progress: Steps) -> RunOptions:
    from ekphory.models.loading import load_configured_chat, load_configured_reranker, load_embedder
    from ekphory.retrieval.pipeline import OptionalModels
    from ekphory_lab.evaluation.commands import PRODUCT, RunOptions

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
            reranker=load_configured_reranker(settings), chat=load_configured_chat(settings)
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
    from ekphory.agent.configuration import read_agent_settings

    return read_agent_settings(arguments={"agent_session_provider": provider})


def _print_reports(reports: Sequence[Report], asked: MeasureOptions) -> None:
    from ekphory_lab.evaluation.commands import (
        agent_line,
        calibration_line,
        compare_reports,
        compare_with_file,
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


# `ekphory eval ablation`: what each stage is worth.

_ABLATION_HEADING = """# What each stage is worth

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
    from ekphory_lab.evaluation.ablation import ablation_table

    found: list[Ablation] = []
    for each in _measured(data):
        found.append(each)
        if not output.json:
            result_console().print(ablation_table(each))
        # After every dataset, so that whoever stops a long run keeps what it has found.
        if not output.json and output.json_file is not None:
            write_json(_reports(found), output.json_file)
        if markdown is not None:
            markdown.write_text(_ablation_document(data, found), encoding="utf-8")
    if output.json:
        print_json(_reports(found))
    elif markdown is not None:
        message_console().print(f"Written: {markdown}", style="dim")


def _measured(paths: Sequence[Path]) -> Iterator[Ablation]:
    from ekphory.models.loading import (
        load_configured_chat,
        load_configured_embedder,
        load_configured_reranker,
    )
    from ekphory.retrieval.pipeline import OptionalModels
    from ekphory_lab.evaluation.ablation import (
        PRESET_VARIATIONS,
        STAGE_VARIATIONS,
        ablate,
        load_benchmark,
    )

    settings = read_settings()
    models = OptionalModels(
        reranker=load_configured_reranker(settings), chat=load_configured_chat(settings)
    )
    embedder = load_configured_embedder(settings)
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
    from ekphory_lab.evaluation.runner import to_json

    return {
        each.benchmark.dataset.name: [
            {"variation": row.variation.name} | to_json(row.report) for row in each.rows
        ]
        for each in found
    }


def _ablation_document(paths: Sequence[Path], found: Sequence[Ablation]) -> str:
    from ekphory_lab.evaluation.ablation import ablation_markdown

    names = " ".join(f"--data {path.name}" for path in paths)
    heading = _ABLATION_HEADING.format(command=f"ekphory eval ablation {names}")
    return heading + "\n".join(map(ablation_markdown, found))


# `ekphory eval cues`: what the words for type and importance in a query are worth.


@command
def cues(output: FileOutputOptions, embedder: EmbedderOption = None) -> None:
    """Ask for what is important, for preferences, procedures and events; with and without hints."""
    from ekphory.models.loading import load_embedder
    from ekphory_lab.evaluation.cues import measure_cues, report_json, scenes

    settings = read_settings()
    model = load_embedder(
        embedder or settings.embedder,
        model=settings.embedder_model,
        api_key=settings.embedder_api_key,
    )
    with step_bar() as progress:
        report = measure_cues(scenes(), embedder=model, progress=progress)
    if output.json:
        print_json(report_json(report))
        return
    result_console().print(_table(report))
    if output.json_file is not None:
        write_json(report_json(report), output.json_file)
        message_console().print(f"Written: {output.json_file}", style="dim")


def _table(report: CueReport) -> Table:
    title = f"MRR over {report.memories} memories, {report.embedder}"
    table = Table(title=title, title_justify="left")
    table.add_column("asks for")
    for header in ("queries", "with hints", "without", "difference", "95 %", "p"):
        table.add_column(header, justify="right")
    for each in report.scores:
        test = each.difference
        table.add_row(
            each.cue,
            str(each.queries),
            f"{each.with_hints.mean:.3f}",
            f"{each.without_hints.mean:.3f}",
            f"{test.difference:+.3f}",
            f"{test.low:+.3f} to {test.high:+.3f}",
            "<.001" if test.p_value < 0.001 else f"{test.p_value:.3f}",
        )
    return table


# `ekphory eval injection`: how well the injection filter tells orders from memories.


@command
def injection(
    data: Annotated[
        Path,
        typer.Option(metavar="FILE", help="JSON Lines with text, injection, kind and part."),
    ],
    output: OutputOptions,
    part: Annotated[
        str | None, typer.Option(help="Only lines of this part: development or held_out.")
    ] = None,
) -> None:
    """Count which labelled lines the injection filter catches, and which it wrongly drops."""
    from ekphory_lab.evaluation.injection import injection_report, read_labelled_lines

    report = injection_report(read_labelled_lines(data, part=part))
    if output.json:
        print_json(report)
        return
    console = result_console()
    console.print(f"precision {report.precision:.3f}, recall {report.recall:.3f}")
    false_alarms = [line for line, _ in report.false_alarms]
    for title, lines in (("missed", report.missed), ("false alarm", false_alarms)):
        for line in lines:
            console.print(f"{title}: {line.text}", markup=False, soft_wrap=True)


# `ekphory eval probabilities`: whether what is said of the best hit is true.


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
    from ekphory_lab.evaluation.stated_probabilities import (
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
    result_console().print(_probabilities_table(found))
    if output.json_file is not None:
        write_json({"sets": [asdict(each) for each in found]}, output.json_file)
        message_console().print(f"Written: {output.json_file}", style="dim")


def _probabilities_table(found: list[StatedProbabilities]) -> Table:
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
