"""What `ekphory eval` runs: load a benchmark, measure the systems, write the files asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from ekphory.agent.settings import AgentSettings
from ekphory.errors import InvalidInput
from ekphory.evaluation.baselines import bm25_system, dense_system, mean_system, rrf_system
from ekphory.evaluation.beir import load_beir
from ekphory.evaluation.comparison import (
    Comparison,
    compare,
    read_score_tables,
    score_table,
    write_reports,
)
from ekphory.evaluation.conversation import load_conversation, load_multihop
from ekphory.evaluation.datasets import Dataset, EvaluationQuery, ask_phrasings
from ekphory.evaluation.label_errors import mark_label_errors
from ekphory.evaluation.locomo import load_locomo
from ekphory.evaluation.metrics import CONVERSATION_MEASURES, MULTIHOP_MEASURES, Measure
from ekphory.evaluation.report import Report
from ekphory.evaluation.retriever import RetrieverFactory
from ekphory.evaluation.runner import DEPTH, Progress, evaluate, silent
from ekphory.evaluation.trec import write_qrels, write_run
from ekphory.models.embedder import EmbeddingModel
from ekphory.results import SearchResult
from ekphory.retrieval.resources import NO_OPTIONAL_MODELS, OptionalModels
from ekphory.types import TimeUse

if TYPE_CHECKING:
    from ekphory.evaluation.product import Observer

PRODUCT = "ekphory"
BASELINES = ("bm25", "dense", "mean", "rrf")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a benchmark is run and what is written.

    Attributes:
        systems: What to measure, in this order: `ekphory`, `ekphory:<preset>`,
            `ekphory:<preset>:<use of time>`, `bm25`, `dense`, `mean` (z-scored mean of the last
            two) or `rrf`.
        embedder: Embedder of all systems that need one; None takes the bundled one.
        models: Reranker and language model of the product, where there are any.
        depth: How many passages each search asks for.
        categories: Keep only questions of these categories; None keeps the protocol's.
        json_file: Where the whole reports go; None writes none.
        run_folder: Where TREC run files and qrels go; None writes none.
        trace_file: Where the traces of the product go, a JSON line per search; None writes none.
        agent: Measure the retrieval agent too, over the store of the first product; None does not.
        progress: Is told how far things are.
    """

    systems: tuple[str, ...] = (PRODUCT,)
    embedder: EmbeddingModel | None = None
    models: OptionalModels = NO_OPTIONAL_MODELS
    depth: int = DEPTH
    categories: tuple[str, ...] | None = None
    json_file: Path | None = None
    run_folder: Path | None = None
    trace_file: Path | None = None
    agent: AgentSettings | None = None
    progress: Progress = silent


_DEFAULTS = RunOptions()


def run_locomo(
    file: Path, *, label_errors: Path | None = None, options: RunOptions = _DEFAULTS
) -> tuple[Report, ...]:
    """Measure on LoCoMo's own file; one report per system.

    With a file of `label_errors` the figures are also given without the questions that it lists.
    """
    _check_systems(options.systems)
    dataset = load_locomo(file, categories=options.categories)
    if label_errors is not None:
        dataset = mark_label_errors(dataset, label_errors)
    return _run(dataset, CONVERSATION_MEASURES, options)


def run_conversation(
    folder: Path,
    *,
    label_errors: Path | None = None,
    phrasings: str = "first",
    options: RunOptions = _DEFAULTS,
) -> tuple[Report, ...]:
    """Measure on a folder of the conversation form; one report per system.

    `label_errors` is as for `run_locomo`, `phrasings` as for `ask_phrasings`.
    """
    _check_systems(options.systems)
    dataset = load_conversation(folder, categories=options.categories)
    if label_errors is not None:
        dataset = mark_label_errors(dataset, label_errors)
    return _run(ask_phrasings(dataset, phrasings), CONVERSATION_MEASURES, options)


def run_beir(
    folder: Path, *, split: str = "test", options: RunOptions = _DEFAULTS
) -> tuple[Report, ...]:
    """Measure on a folder of BEIR's form; one report per system."""
    _check_systems(options.systems)
    return _run(load_beir(folder, split=split), CONVERSATION_MEASURES, options)


def run_multihop(folder: Path, *, options: RunOptions = _DEFAULTS) -> tuple[Report, ...]:
    """Measure on a folder of the multi-hop form; one report per system."""
    _check_systems(options.systems)
    dataset = load_multihop(folder, categories=options.categories)
    return _run(dataset, MULTIHOP_MEASURES, options)


def compare_reports(reports: Sequence[Report]) -> tuple[Comparison, ...]:
    """Compare the first report with every other one: how much the first is better."""
    tables = [score_table(report) for report in reports]
    return tuple(compare(other, tables[0]) for other in tables[1:])


def compare_with_file(reports: Sequence[Report], file: Path) -> tuple[Comparison, ...]:
    """Compare each report with the run of the same system in an earlier JSON file.

    A system that the file lacks is compared with the file's first run.

    Raises:
        DatasetError: The file is no such file, or was measured on other queries.
    """
    earlier = read_score_tables(file)
    by_system = {table.system: table for table in earlier}
    return tuple(
        compare(by_system.get(report.system, earlier[0]), score_table(report)) for report in reports
    )


def _run(
    dataset: Dataset, measures: tuple[Measure, ...], options: RunOptions
) -> tuple[Report, ...]:
    if options.trace_file is not None:
        options.trace_file.parent.mkdir(parents=True, exist_ok=True)
        options.trace_file.unlink(missing_ok=True)
    if options.agent is not None and not any(map(_is_product, options.systems)):
        raise InvalidInput(
            "agent", options.systems, "no system has a store", f"Measure {PRODUCT} beside it"
        )
    reports: list[Report] = []
    for name in options.systems:
        with _open_system(name, options) as system:
            reports.append(_evaluated(dataset, system, measures, options))
            if options.agent is not None and _is_first_product(name, options):
                agent = _agent_over(system, options.agent)
                # The first report is the one that is compared with the others.
                reports.insert(0, _evaluated(dataset, agent, measures, options))
    _write(tuple(reports), options)
    return tuple(reports)


def _evaluated(
    dataset: Dataset,
    system: RetrieverFactory,
    measures: tuple[Measure, ...],
    options: RunOptions,
) -> Report:
    return evaluate(
        dataset, system, measures=measures, depth=options.depth, progress=options.progress
    )


def _is_first_product(name: str, options: RunOptions) -> bool:
    return name == next((each for each in options.systems if _is_product(each)), None)


def _is_product(name: str) -> bool:
    return name.partition(":")[0] == PRODUCT


def _agent_over(system: RetrieverFactory, settings: AgentSettings) -> RetrieverFactory:
    from ekphory.evaluation.agent_system import AgentSystem
    from ekphory.evaluation.product import EkphorySystem

    if not isinstance(system, EkphorySystem):
        raise TypeError(f"{system.name} has no store for the agent")
    return AgentSystem(system, settings)


def _write(reports: tuple[Report, ...], options: RunOptions) -> None:
    if options.json_file is not None:
        options.json_file.parent.mkdir(parents=True, exist_ok=True)
        write_reports(reports, options.json_file)
    if options.run_folder is not None:
        options.run_folder.mkdir(parents=True, exist_ok=True)
        dataset = reports[0].dataset
        write_qrels(dataset, options.run_folder / f"{dataset.name}.qrels")
        for report in reports:
            file = f"{dataset.name}.{report.system.replace(':', '-')}.run"
            write_run(report, options.run_folder / file)


@contextmanager
def _open_system(name: str, options: RunOptions) -> Iterator[RetrieverFactory]:
    if name == "bm25":
        yield bm25_system()
        return
    embedder = options.embedder or _bundled_embedder()
    if name in BASELINES:
        build = {"dense": dense_system, "mean": mean_system, "rrf": rrf_system}[name]
        yield build(embedder)
        return
    from ekphory.evaluation.product import EkphorySystem

    _, preset, use = [*name.split(":"), "", ""][:3]
    with (
        _trace_writer(options.trace_file, system=name) as observer,
        EkphorySystem(
            preset=preset or None,
            time=_time_use(name, use),
            embedder=embedder,
            models=options.models,
            observer=observer,
        ) as product,
    ):
        yield product


@contextmanager
def _trace_writer(file: Path | None, *, system: str) -> Iterator[Observer | None]:
    if file is None:
        yield None
        return
    with file.open("a", encoding="utf-8") as stream:

        def observe(query: EvaluationQuery, result: SearchResult) -> None:
            row = {"system": system, "pool": query.pool, "query": query.id}
            stream.write(json.dumps(row | {"trace": result.trace.to_dict()}, default=str) + "\n")

        yield observe


def _check_systems(systems: tuple[str, ...]) -> None:
    for name in systems:
        if name not in BASELINES and not _is_product(name):
            raise InvalidInput(
                "system",
                name,
                "there is no such system",
                f"Take {PRODUCT}, {PRODUCT}:<preset> or one of {', '.join(BASELINES)}.",
            )
    if not systems:
        raise InvalidInput("systems", systems, "nothing would be measured", "Name one.")


def _time_use(system: str, use: str) -> TimeUse:
    for known in get_args(TimeUse):
        if use in (known, ""):
            return cast("TimeUse", known)
    uses = ", ".join(get_args(TimeUse))
    raise InvalidInput("system", system, f"there is no use of time {use!r}", f"Take one of {uses}.")


def _bundled_embedder() -> EmbeddingModel:
    from ekphory.models.loading import load_embedder

    return load_embedder(None)
