"""Configurations for people: one rich table, each line beside plain vector search."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from recollect.evaluation.configuration_runs import MEASURES, ConfigurationRun
from recollect.evaluation.report import Report
from recollect.evaluation.stats import PairedTest

_MAIN = MEASURES[0].name
_OTHERS = ("MRR", "R@10")


def configuration_table(runs: Sequence[ConfigurationRun]) -> Table:
    """Show each configuration with its figures, those of vector-only search, and its latency.

    The p-value is that of the paired randomisation test on one pair; among many configurations
    some are below .05 by chance.

    Args:
        runs: At least one; the first is vector-only search, and was run.
    """
    baseline = runs[0].report
    table = Table(title=_title(baseline), title_justify="left")
    table.add_column("", no_wrap=True)
    table.add_column("configuration", min_width=30)
    for name in (_MAIN, "A", "difference", "p", *_OTHERS, "published", "p50 ms", "p95 ms"):
        table.add_column(name, justify="right", no_wrap=True)
    reference = "" if baseline is None else _mean(baseline, _MAIN)
    for run in runs:
        table.add_row(run.configuration.id, _label(run), *_figures(run, reference))
    return table


def _title(baseline: Report | None) -> str:
    if baseline is None:
        return "Memory-Spark's configurations"
    dataset = baseline.dataset
    passages = sum(map(len, dataset.pools.values()))
    return (
        f"Memory-Spark's configurations on {dataset.name}: {len(dataset.queries)} queries, "
        f"{passages} passages; published: {_MAIN} on SciFact with upstream's own models"
    )


def _label(run: ConfigurationRun) -> Text:
    configuration = run.configuration
    notes = [configuration.label]
    if configuration.same_as is not None:
        notes.append(f"the same as {configuration.same_as}")
    if configuration.at_head is not None:
        notes.append(f"upstream now runs {configuration.at_head} for it")
    if run.missing:
        notes.append(f"needs a {' and a '.join(run.missing)}")
    return Text("; ".join(notes), style="dim" if run.missing else "")


def _figures(run: ConfigurationRun, reference: str) -> list[str]:
    published = run.configuration.published
    shown = "" if published is None else _number(published)
    report = run.report
    if report is None:
        return ["–", reference, "", "", *[""] * len(_OTHERS), shown, "", ""]
    test = None if run.against_baseline is None else run.against_baseline.tests[_MAIN]
    return [
        _mean(report, _MAIN),
        reference,
        *_difference(test),
        *(_mean(report, name) for name in _OTHERS),
        shown,
        f"{report.latency.p50:.1f}",
        f"{report.latency.p95:.1f}",
    ]


def _difference(test: PairedTest | None) -> tuple[str, str]:
    if test is None:
        return "", ""
    sign = "-" if test.difference < 0 else "+"
    p_value = "<.001" if test.p_value < 0.001 else f"{test.p_value:.3f}".removeprefix("0")
    return sign + _number(abs(test.difference)), p_value


def _mean(report: Report, name: str) -> str:
    return _number(report.overall.estimates[name].mean)


def _number(value: float) -> str:
    return f"{value:.4f}".removeprefix("0")
