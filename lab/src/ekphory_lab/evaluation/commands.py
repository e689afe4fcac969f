"""What `ekphory eval` runs: load a benchmark, measure the systems, write the report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ekphory.agent.provider import AgentSettings
from ekphory.errors import InvalidInput
from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.pipeline import NO_OPTIONAL_MODELS, OptionalModels
from ekphory.search import SearchResult
from ekphory.types import TimeUse
from ekphory_lab.evaluation.datasets import (
    LOCOMO_CATEGORIES,
    Dataset,
    EvaluationQuery,
    ask_phrasings,
)
from ekphory_lab.evaluation.loaders import (
    load_beir,
    load_conversation,
    load_locomo,
    load_multihop,
    mark_label_errors,
    write_qrels,
    write_run,
)
from ekphory_lab.evaluation.metrics import (
    BEST,
    CONVERSATION_MEASURES,
    MULTIHOP_MEASURES,
    Estimate,
    Measure,
)
from ekphory_lab.evaluation.runner import (
    DEPTH,
    MISS_CUTOFF,
    Comparison,
    GroupScores,
    Progress,
    QueryOutcome,
    Report,
    RetrieverFactory,
    compare,
    evaluate,
    misses,
    read_score_tables,
    score_table,
    silent,
    write_reports,
)
from ekphory_lab.evaluation.systems import bm25_system, dense_system, mean_system, rrf_system

if TYPE_CHECKING:
    from ekphory_lab.evaluation.systems import Observer


# Reports for people: rich tables, and the list of what was missed.

_PREFERRED = ("MAP", "MRR", "NDCG@10", "R@2", "R@5", "R@20")
_PREFERRED_MULTIHOP = ("MAP", "R@2", "R@5", "R@10", "AllGold@10")
_SHOWN_ABOVE = 3
_TEXT_LENGTH = 160


def summary_table(reports: Sequence[Report]) -> Table:
    """Show several systems on one dataset, a line each, with latencies.

    Args:
        reports: At least one, all on the same dataset and with the same measures.
    """
    names = _shown(reports[0])
    table = Table(title=_title(reports[0].dataset), title_justify="left")
    table.add_column("system")
    for name in names:
        table.add_column(name, justify="right")
    table.add_column("p50 ms", justify="right")
    table.add_column("p95 ms", justify="right")
    for report in reports:
        estimates = report.overall.estimates
        table.add_row(
            Text(report.system),
            *(_number(estimates[name].mean) for name in names),
            f"{report.latency.p50:.1f}",
            f"{report.latency.p95:.1f}",
        )
    return table


def report_table(report: Report) -> Table:
    """Show one system: a line per category, and one overall with 95 % confidence intervals."""
    names = _shown(report)
    table = Table(title=f"{report.system} on {report.dataset.name}", title_justify="left")
    table.add_column("category")
    table.add_column("queries", justify="right")
    for name in names:
        table.add_column(name, justify="right")
    known = report.categories.keys() <= LOCOMO_CATEGORIES.keys()
    for category, group in report.categories.items():
        label = f"{category} {LOCOMO_CATEGORIES[category]}" if known else category
        table.add_row(Text(label), *_cells(group, names))
    table.add_section()
    table.add_row("overall", *_cells(report.overall, names))
    table.add_row("95 %", "", *(_interval(report.overall.estimates[name]) for name in names))
    if report.without_label_errors is not None:
        table.add_row("without label errors", *_cells(report.without_label_errors, names))
    return table


def calibration_line(report: Report) -> Text | None:
    """Say how far the probabilities are from what is observed; None where they are none."""
    found = report.calibration
    if found is None:
        return None
    return Text(
        f"calibration of {report.system}: expected error {_number(found.hits)} over the best "
        f"{BEST} hits, {_number(found.first_hit)} over the first, which says "
        f"{found.first_said:.2f} and is right in {found.first_right:.2f}"
    )


def agent_line(report: Report) -> Text | None:
    """Say how many searches the retrieval agent made; None for another system."""
    found = report.configuration
    if "agent" not in found:
        return None
    return Text(
        f"{report.system}: {found['searches_a_question']} searches a question; "
        f"{found['questions_of_one_search']} of {len(report.outcomes)} questions took one; "
        f"{found['fallbacks']} fell back to plain search; {report.latency.mean:.1f} ms on average"
    )


def comparison_table(comparison: Comparison) -> Table:
    """Show how two runs differ: difference, its 95 % interval, p-value, queries won and lost."""
    title = f"{comparison.second} minus {comparison.first}, {comparison.queries} queries"
    table = Table(title=title, title_justify="left")
    table.add_column("measure")
    for header in ("difference", "95 %", "p", "better", "worse"):
        table.add_column(header, justify="right")
    for name, test in comparison.tests.items():
        interval = f"{_signed(test.low)} to {_signed(test.high)}"
        p_value = "<.001" if test.p_value < 0.001 else _number(test.p_value)
        table.add_row(
            name, _signed(test.difference), interval, p_value, str(test.better), str(test.worse)
        )
    return table


def show_misses(report: Report, *, limit: int = 20, cutoff: int = MISS_CUTOFF) -> Group:
    """Show the queries that were answered worst.

    For each: its relevant passages with the rank that each got, and the passages on top that
    are not relevant.

    Args:
        report: The report.
        limit: How many queries to show at most.
        cutoff: A relevant passage below this rank is a miss.
    """
    missed = misses(report, cutoff=cutoff)
    heading = (
        f"{len(missed)} of {len(report.outcomes)} queries miss a relevant passage in the first "
        f"{cutoff}; the {min(limit, len(missed))} worst:"
    )
    shown = [Text(heading, style="bold")]
    texts = {
        pool: {passage.id: passage.indexed_text for passage in passages}
        for pool, passages in report.dataset.pools.items()
    }
    for outcome in missed[:limit]:
        shown.append(_miss(outcome, texts[outcome.query.pool], depth=report.depth))
    return Group(*shown)


def _miss(outcome: QueryOutcome, texts: dict[str, str], *, depth: int) -> Text:
    query = outcome.query
    shown = Text()
    origin = " ".join(part for part in (query.pool, query.id, query.category) if part)
    shown.append(f"\n{origin}: {_cut(query.text)}\n", style="bold")
    for passage_id, rank in outcome.relevant_ranks.items():
        place = f"rank {rank}" if rank is not None else f"not in {depth}"
        shown.append(f"  wanted, {place}: ", style="green")
        shown.append(f"{passage_id} {_cut(texts[passage_id])}\n")
    above = [passage_id for passage_id, _ in outcome.ranking]
    wrong = [(rank, p) for rank, p in enumerate(above, 1) if p not in outcome.relevant_ranks]
    for rank, passage_id in wrong[:_SHOWN_ABOVE]:
        shown.append(f"  instead, rank {rank}: ", style="red")
        shown.append(f"{passage_id} {_cut(texts[passage_id])}\n")
    return shown


def _title(dataset: Dataset) -> str:
    state = "verified" if dataset.verified else "unverified"
    return (
        f"{dataset.name}: {len(dataset.queries)} queries, "
        f"{sum(map(len, dataset.pools.values()))} passages in {len(dataset.pools)} pools; "
        f"sha256 {dataset.sha256[:12]} ({state}); {dataset.source.licence}"
    )


def _shown(report: Report) -> list[str]:
    available = list(report.overall.estimates)
    preferred = _PREFERRED_MULTIHOP if "AllGold@10" in available else _PREFERRED
    return [name for name in preferred if name in available] or available


def _cells(group: GroupScores, names: Sequence[str]) -> list[str]:
    return [str(group.queries), *(_number(group.estimates[name].mean) for name in names)]


def _interval(estimate: Estimate) -> str:
    return f"{_number(estimate.low)}-{_number(estimate.high)}"


def _number(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _signed(value: float) -> str:
    sign = "-" if round(value, 4) < 0 else "+"
    return sign + f"{abs(value):.4f}".removeprefix("0")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_LENGTH else line[: _TEXT_LENGTH - 1] + "…"


# What `ekphory eval` runs: load a benchmark, measure the systems, write the files asked for.

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
    from ekphory_lab.evaluation.systems import AgentSystem, EkphorySystem

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
    from ekphory_lab.evaluation.systems import EkphorySystem

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
