"""`ekphory eval`: measure retrieval on a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ekphory.agent.provider import ProviderName
from ekphory.cli.command import Steps, command, result_console, step_bar
from ekphory.cli.options import EmbedderOption, FileOutputOptions, OutputOptions
from ekphory.cli.output import print_json, write_json
from ekphory.errors import InvalidInput
from ekphory_lab.cli.reports import (
    load_chosen_embedder,
    load_optional_models,
    name_written_files,
    show_report,
)

if TYPE_CHECKING:
    from ekphory_lab.evaluation.commands import RunOptions
    from ekphory_lab.evaluation.datasets import Dataset
    from ekphory_lab.evaluation.metrics import Measure
    from ekphory_lab.evaluation.runner import Report
    from ekphory_lab.evaluation.tables import ReportTable

# What the commands run is imported inside of them: it loads LanceDB and ONNX Runtime, and every
# `ekphory` command reads this file.


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
    agent: Annotated[
        ProviderName | None,
        typer.Option(help="Measure the retrieval agent too, held by this provider."),
    ] = None


_Folder = Annotated[Path, typer.Option("--data", metavar="DIR", help="The benchmark's folder.")]


@command
def locomo(
    data: Annotated[Path, typer.Option("--data", metavar="FILE", help="LoCoMo's own JSON file.")],
    asked: MeasureOptions,
    output: FileOutputOptions,
) -> None:
    """Measure on LoCoMo's own file: every turn a memory, its evidence turns relevant."""
    from ekphory_lab.evaluation.loaders import load_locomo

    _measure(lambda: load_locomo(data, categories=asked.category), asked, output)


@command
def conversation(
    data: _Folder,
    asked: MeasureOptions,
    output: FileOutputOptions,
    phrasings: Annotated[
        str,
        typer.Option(
            help="first: ask each question once; all: also in its other phrasings, each a query."
        ),
    ] = "first",
) -> None:
    """Measure on a folder with conversations as corpus, queries and qrels."""
    from ekphory_lab.evaluation.datasets import ask_phrasings
    from ekphory_lab.evaluation.loaders import load_conversation

    def load() -> Dataset:
        return ask_phrasings(load_conversation(data, categories=asked.category), phrasings)

    _measure(load, asked, output)


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
    from ekphory_lab.evaluation.loaders import load_beir

    if configs is not None:
        of_split = "" if split == "test" else f" --split {split}"
        command_line = f"ekphory eval beir --data {data.name}{of_split} --configs {configs}"
        _measure_configurations(
            lambda: load_beir(data, split=split),
            configs,
            asked,
            output,
            markdown=markdown,
            command_line=command_line,
        )
        return
    if markdown is not None:
        raise InvalidInput(
            "markdown", str(markdown), "is for configurations", "Name some with --configs"
        )
    _measure(lambda: load_beir(data, split=split), asked, output)


@command
def multihop(data: _Folder, asked: MeasureOptions, output: FileOutputOptions) -> None:
    """Measure whether all passages are found that a multi-hop question needs."""
    from ekphory_lab.evaluation.loaders import load_multihop
    from ekphory_lab.evaluation.metrics import MULTIHOP_MEASURES

    _measure(
        lambda: load_multihop(data, categories=asked.category), asked, output, MULTIHOP_MEASURES
    )


def _measure(
    load: Callable[[], Dataset],
    asked: MeasureOptions,
    output: FileOutputOptions,
    measures: tuple[Measure, ...] | None = None,
) -> None:
    from ekphory_lab.evaluation.commands import run_systems
    from ekphory_lab.evaluation.metrics import CONVERSATION_MEASURES
    from ekphory_lab.evaluation.runner import to_json

    with step_bar() as progress:
        options = _run_options(asked, output, progress)
        reports = run_systems(load(), options, measures=measures or CONVERSATION_MEASURES)
    if output.json:
        print_json({"reports": [to_json(report) for report in reports]})
        return
    _print_reports(reports, asked)
    name_written_files(output.json_file)


def _run_options(asked: MeasureOptions, output: FileOutputOptions, progress: Steps) -> RunOptions:
    from ekphory.agent.configuration import read_agent_settings
    from ekphory_lab.evaluation.commands import PRODUCT, RunOptions

    product = PRODUCT if asked.preset is None else f"{PRODUCT}:{asked.preset}"
    provider = asked.agent
    return RunOptions(
        systems=tuple(asked.system or [product]),
        embedder=load_chosen_embedder(asked.embedder),
        models=load_optional_models(),
        depth=asked.depth,
        json_file=None if output.json else output.json_file,
        agent=None
        if provider is None
        else read_agent_settings(arguments={"agent_session_provider": provider}),
        progress=progress,
    )


def _print_reports(reports: Sequence[Report], asked: MeasureOptions) -> None:
    from ekphory_lab.evaluation import commands

    console = result_console()
    console.print(commands.summary_table(reports).for_terminal())
    for report in reports:
        console.print(commands.report_table(report).for_terminal())
        for line in (commands.calibration_line(report), commands.agent_line(report)):
            if line is not None:
                console.print(line, soft_wrap=True)
    comparisons = commands.compare_reports(reports)
    if asked.compare is not None:
        comparisons += commands.compare_with_file(reports, asked.compare)
    for comparison in comparisons:
        console.print(commands.comparison_table(comparison).for_terminal())
    for line in commands.list_misses(reports[0], limit=asked.limit) if asked.show_misses else ():
        console.print(line)


# Memory-Spark's configurations.

_CONFIGURATIONS_HEADING = """# Memory-Spark's configurations

Each of its thirty-six configurations beside A, vector search alone: the difference to A, and the
p-value of a paired randomisation test on that pair. Only A's times include embedding the question:
its vector is cached for the others. Embedder: {embedder}; reranker: {reranker}; language model:
{chat}. Made by

    {command}

"""


def _measure_configurations(
    load: Callable[[], Dataset],
    names: str,
    asked: MeasureOptions,
    output: FileOutputOptions,
    *,
    markdown: Path | None,
    command_line: str,
) -> None:
    from ekphory_lab.evaluation import configurations

    chosen = configurations.choose_configurations(names.split(","))
    with step_bar() as progress:
        runs = configurations.run_configurations(
            load(),
            chosen,
            embedder=load_chosen_embedder(asked.embedder),
            models=load_optional_models(),
            progress=progress,
        )
    table = configurations.configuration_table(runs)
    show_report(configurations.runs_json(runs), output, tables=[table])
    if markdown is not None and runs[0].report is not None:
        models = runs[0].report.configuration
        named = {name: models[name] or "none" for name in ("embedder", "reranker", "chat")}
        heading = _CONFIGURATIONS_HEADING.format(command=command_line, **named)
        write_markdown(heading, [table], markdown)
        if not output.json:
            name_written_files(markdown)


def write_markdown(heading: str, tables: Sequence[ReportTable], file: Path) -> None:
    """Write tables beneath a heading."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = heading + "\n".join(table.markdown() for table in tables)
    file.write_text(text, encoding="utf-8")


# What each stage is worth.

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
    names = " ".join(f"--data {path.name}" for path in data)
    heading = _ABLATION_HEADING.format(command=f"ekphory eval ablation {names}")
    tables: list[ReportTable] = []
    found: dict[str, object] = {}
    for name, table, rows in _ablate(data):
        tables.append(table)
        found[name] = rows
        # After every dataset, so that whoever stops a long run keeps what it has found.
        if not output.json:
            result_console().print(table.for_terminal())
            if output.json_file is not None:
                write_json(found, output.json_file)
        if markdown is not None:
            write_markdown(heading, tables, markdown)
    if output.json:
        print_json(found)
    else:
        name_written_files(output.json_file, markdown)


def _ablate(paths: Sequence[Path]) -> Iterator[tuple[str, ReportTable, list[object]]]:
    from ekphory_lab.evaluation import ablation
    from ekphory_lab.evaluation.runner import to_json

    models, embedder = load_optional_models(), load_chosen_embedder(None)
    variations = {**ablation.STAGE_VARIATIONS, **ablation.PRESET_VARIATIONS}
    for path in paths:
        benchmark = ablation.load_benchmark(path)
        with step_bar() as progress:
            reports = ablation.ablate(
                benchmark.dataset, variations, embedder=embedder, models=models, progress=progress
            )
        table = ablation.ablation_table(benchmark, reports)
        rows = [{"variation": name} | to_json(report) for name, report in reports.items()]
        yield benchmark.dataset.name, table, list(rows)


# What words for type and importance are worth, how well the injection filter tells orders from
# memories, and whether what is said of the best hit is true.


@command
def cues(output: FileOutputOptions, embedder: EmbedderOption = None) -> None:
    """Ask for what is important, for preferences, procedures and events; with and without hints."""
    from ekphory.models.loading import load_embedder
    from ekphory_lab.evaluation.cues import cue_table, measure_cues, read_scenes

    model = load_chosen_embedder(embedder) or load_embedder()
    with step_bar() as progress:
        report = measure_cues(read_scenes(), embedder=model, progress=progress)
    show_report(report, output, tables=[cue_table(report)])


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
            console.print(f"{title}: {line.text}", soft_wrap=True)


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
        probabilities_table,
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
    show_report({"sets": found}, output, tables=[probabilities_table(found)])
