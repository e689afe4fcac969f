"""Reports for people: rich tables, and the list of what was missed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ekphory.evaluation.calibration import BEST
from ekphory.evaluation.comparison import Comparison
from ekphory.evaluation.datasets import LOCOMO_CATEGORIES, Dataset
from ekphory.evaluation.report import (
    MISS_CUTOFF,
    GroupScores,
    QueryOutcome,
    Report,
    misses,
)
from ekphory.evaluation.stats import Estimate

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
