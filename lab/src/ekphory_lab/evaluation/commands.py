"""What `ekphory eval` runs: measure systems on a benchmark, write the files, show the figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast, get_args

from ekphory.agent.configuration import read_agent_settings
from ekphory.agent.provider import ProviderName
from ekphory.errors import InvalidInput
from ekphory.models.loading import load_embedder
from ekphory.retrieval.pipeline import Pipeline, Stage
from ekphory.retrieval.presets import preset
from ekphory.retrieval.stages.rerank import GateReranker, Rerank
from ekphory.types import TimeUse
from ekphory_lab.evaluation import runner, tables
from ekphory_lab.evaluation.ablation import instead
from ekphory_lab.evaluation.datasets import LOCOMO_CATEGORIES, Dataset
from ekphory_lab.evaluation.metrics import BEST, CONVERSATION_MEASURES, Measure
from ekphory_lab.evaluation.options import MeasureOptions
from ekphory_lab.evaluation.systems import (
    FUSIONS,
    EkphorySystem,
    OtherSearch,
    bm25_system,
    dense_system,
    fused_system,
)

# Measuring.

PRODUCT = "ekphory"
BASELINES = ("bm25", "dense", *FUSIONS)


def run_systems(
    dataset: Dataset,
    asked: MeasureOptions,
    means: runner.Means,
    *,
    measures: tuple[Measure, ...] = CONVERSATION_MEASURES,
) -> tuple[runner.Report, ...]:
    """Measure the systems on a set; one report per system.

    The report of the agent, which searches the store of the first product, comes first: the first
    one is compared with the others.

    Raises:
        InvalidInput: There is no such system, or no product whose store an agent could search.
    """

    def measured(system: runner.RetrieverFactory) -> runner.Report:
        return runner.evaluate(
            dataset, system, measures=measures, depth=asked.depth, progress=means.progress
        )

    names = asked.system or [PRODUCT if asked.preset is None else f"{PRODUCT}:{asked.preset}"]
    _check_systems(names, with_agent=asked.agent is not None)
    reports: list[runner.Report] = []
    agent = asked.agent
    for name in names:
        with _open_system(name, means) as system:
            reports.append(measured(system))
            if asked.ungated and isinstance(system, EkphorySystem):
                reports += map(measured, _without(system, GateReranker, "always reranked"))
            if asked.gated and isinstance(system, EkphorySystem):
                reports.append(measured(_with_gate(system)))
            if asked.unread and isinstance(system, EkphorySystem):
                reports += map(measured, _without(system, Rerank, "unread"))
            if agent is not None and isinstance(system, EkphorySystem):
                reports.insert(0, measured(ask_agent(system, agent)))
                agent = None
    return tuple(reports)


def _check_systems(names: Sequence[str], *, with_agent: bool) -> None:
    products = [name for name in names if name.partition(":")[0] == PRODUCT]
    for name in names:
        if name not in (*BASELINES, *products):
            raise InvalidInput(
                "system",
                name,
                "there is no such system",
                f"Take {PRODUCT}, {PRODUCT}:<preset> or one of {', '.join(BASELINES)}.",
            )
    if with_agent and not products:
        raise InvalidInput("agent", names, "no system has a store", f"Measure {PRODUCT} beside it")


def ask_agent(system: EkphorySystem, provider: ProviderName) -> OtherSearch:
    """Search the store of a system with the retrieval agent, held by this provider."""
    agent = read_agent_settings(arguments={"agent_session_provider": provider})
    return OtherSearch(system, agent=agent)


def compare_reports(reports: Sequence[runner.Report]) -> tuple[runner.Comparison, ...]:
    """Compare the first report with every other one: how much the first is better."""
    first, *others = reports
    return tuple(runner.compare(other, first) for other in others)


def reports_json(reports: Sequence[runner.Report]) -> dict[str, object]:
    """Return the reports, and the comparisons of the first with the others, for JSON."""
    return {
        "reports": [runner.to_json(report) for report in reports],
        "comparisons": compare_reports(reports),
    }


def _without(system: EkphorySystem, kind: type[Stage], named: str) -> Iterator[OtherSearch]:
    """Yield the same without its stages of a kind, if it has any."""
    pipeline = preset(system.preset)
    stages = [stage for stage in pipeline.stages if not isinstance(stage, kind)]
    if len(stages) < len(pipeline.stages):
        yield OtherSearch(system, Pipeline(f"{system.name}, {named}", stages))


def _with_gate(system: EkphorySystem) -> OtherSearch:
    """Return the same with the learned gate before its reranker."""
    stages = instead(GateReranker(mode="auto"))(preset(system.preset).stages)
    return OtherSearch(system, Pipeline(f"{system.name}, gated", stages))


@contextmanager
def _open_system(name: str, means: runner.Means) -> Iterator[runner.RetrieverFactory]:
    if name == "bm25":
        yield bm25_system()
        return
    embedder = means.embedder or load_embedder()
    if name in BASELINES:
        yield dense_system(embedder) if name == "dense" else fused_system(name, embedder)
        return
    _, named, use = [*name.split(":"), "", ""][:3]
    with EkphorySystem(
        preset=named or None, time=_time_use(name, use), embedder=embedder, models=means.models
    ) as product:
        yield product


def _time_use(system: str, use: str) -> TimeUse:
    uses = get_args(TimeUse)
    if use and use not in uses:
        problem = f"there is no use of time {use!r}"
        raise InvalidInput("system", system, problem, f"Take one of {', '.join(uses)}.")
    return cast("TimeUse", use or uses[0])


# Reports for people.

_PREFERRED = ("MAP", "MRR", "NDCG@10", "R@2", "R@5", "R@20")
_PREFERRED_MULTIHOP = ("MAP", "R@2", "R@5", "R@10", "AllGold@10")
_SHOWN_ABOVE = 3
_MOST_MISSES = 20
_TEXT_LENGTH = 160


def summary_table(reports: Sequence[runner.Report]) -> tables.ReportTable:
    """Show several systems on one dataset, a line each, with latencies.

    Args:
        reports: At least one, all on the same dataset and with the same measures.
    """
    names, dataset = _shown_measures(reports[0]), reports[0].dataset
    state = "verified" if dataset.verified else "unverified"
    return tables.records_table(
        f"{dataset.name}: {len(dataset.queries)} queries, "
        f"{dataset.size} passages in {len(dataset.pools)} pools; "
        f"sha256 {dataset.sha256[:12]} ({state}); {dataset.source.licence}",
        (
            {
                "system": report.system,
                **{name: report.mean(name) for name in names},
                "p50 / p95 ms": report.latency,
            }
            for report in reports
        ),
    )


def report_table(report: runner.Report) -> tables.ReportTable:
    """Show one system: a line per category, and one overall with 95 % confidence intervals."""
    names = _shown_measures(report)
    labels = LOCOMO_CATEGORIES if report.categories.keys() <= LOCOMO_CATEGORIES.keys() else {}
    groups = {
        f"{name} {labels.get(name, '')}".rstrip(): group
        for name, group in report.categories.items()
    }
    return group_table(
        f"{report.system} on {report.dataset.name}", groups | {"overall": report.overall}, names
    )


def group_table(
    title: str, groups: Mapping[str, runner.GroupScores], names: Sequence[str], *, note: str = ""
) -> tables.ReportTable:
    """Show the means of groups of queries, and the 95 % confidence intervals of the last."""
    records: list[Mapping[str, object]] = [
        {
            "category": label,
            "queries": group.queries,
            **{name: group.scores[name].mean for name in names},
        }
        for label, group in groups.items()
    ]
    last = list(groups.values())[-1]
    intervals = {name: tables.format_interval(last.scores[name]) for name in names}
    return tables.records_table(title, [*records, {"category": "95 %", **intervals}], note=note)


def report_lines(report: runner.Report) -> Iterator[str]:
    """Say how far probabilities are from what is observed, and how many searches an agent made."""
    found, made = report.calibration, report.configuration
    if found is not None:
        yield (
            f"calibration of {report.system}: expected error {tables.format_figure(found.hits)} "
            f"over the best {BEST} hits, {tables.format_figure(found.first_hit)} over the first, "
            f"which says {found.first_said:.2f} and is right in {found.first_right:.2f}"
        )
    if made.get("gate_skipped") is not None:
        yield (
            f"{report.system}: the gate let the reranker rest for {made['gate_skipped']:.1%} of "
            f"the questions; {report.latency.mean:.1f} ms a question on average"
        )
    if "agent" in made:
        yield (
            f"{report.system}: {made['searches_a_question']} searches a question; "
            f"{made['questions_of_one_search']} of {len(report.outcomes)} questions took one; "
            f"{made['fallbacks']} fell back to plain search; "
            f"{report.latency.mean:.1f} ms on average"
        )


def comparison_table(comparison: runner.Comparison) -> tables.ReportTable:
    """Show how two runs differ: difference, its 95 % interval, p-value, queries won and lost."""
    return tables.records_table(
        f"{comparison.second} minus {comparison.first}, {comparison.queries} queries",
        (
            {"measure": name, "difference": test, "better": test.better, "worse": test.worse}
            for name, test in comparison.tests.items()
        ),
    )


def list_misses(report: runner.Report, *, cutoff: int = runner.MISS_CUTOFF) -> Iterator[str]:
    """Yield lines about the twenty queries that were answered worst.

    For each: its relevant passages with the rank that each got, and the passages on top that
    are not relevant.

    Args:
        report: The report.
        cutoff: A relevant passage below this rank is a miss.
    """
    missed = runner.misses(report, cutoff=cutoff)
    yield (
        f"{len(missed)} of {len(report.outcomes)} queries miss a relevant passage in the first "
        f"{cutoff}; the {min(_MOST_MISSES, len(missed))} worst:"
    )
    for outcome in missed[:_MOST_MISSES]:
        query = outcome.query
        texts = {each.id: each.indexed_text for each in report.dataset.pools[query.pool]}
        origin = " ".join(part for part in (query.pool, query.id, query.category) if part)
        yield f"\n{origin}: {_shorten(query.text)}"
        for passage_id, rank in outcome.relevant_ranks.items():
            place = f"rank {rank}" if rank is not None else f"not in {report.depth}"
            yield f"  wanted, {place}: {passage_id} {_shorten(texts[passage_id])}"
        wrong = [
            f"  instead, rank {rank}: {passage_id} {_shorten(texts[passage_id])}"
            for rank, (passage_id, _) in enumerate(outcome.ranking, 1)
            if passage_id not in outcome.relevant_ranks
        ]
        yield from wrong[:_SHOWN_ABOVE]


def _shown_measures(report: runner.Report) -> list[str]:
    available = list(report.overall.scores)
    preferred = _PREFERRED_MULTIHOP if "AllGold@10" in available else _PREFERRED
    return [name for name in preferred if name in available] or available


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_LENGTH else line[: _TEXT_LENGTH - 1] + "…"
