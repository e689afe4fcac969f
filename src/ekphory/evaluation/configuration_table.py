"""Configurations for people: each a line beside plain vector search, as rich table or Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ekphory.evaluation.configuration_runs import MEASURES, ConfigurationRun
from ekphory.evaluation.report import Report
from ekphory.evaluation.stats import PairedTest

_MAIN = MEASURES[0].name
_OTHERS = ("MRR", "R@10")
_HEADERS = ("", "configuration", _MAIN, "A", "difference", "p", *_OTHERS, "published")
_TIMES = ("p50 ms", "p95 ms")
_NOTHING = "–"
_NO_TIMES = (
    f"{_NOTHING} under {_TIMES[0]}: the reranker had read some of these passages for a "
    "configuration above, so the times would be too short; run that one alone to measure them."
)


def configuration_table(runs: Sequence[ConfigurationRun]) -> Table:
    """Show each configuration with its figures, those of vector-only search, and its latency.

    The p-value is that of the paired randomisation test on one pair; among many configurations
    some are below .05 by chance. Latency is left out where scores of the reranker were remembered.

    Args:
        runs: At least one; the first is vector-only search, and was run.
    """
    baseline = runs[0].report
    table = Table(title=_title(baseline), title_justify="left", caption_justify="left")
    if any(run.remembered for run in runs):
        table.caption = _NO_TIMES
    table.add_column("", no_wrap=True)
    table.add_column("configuration", min_width=30)
    for name in (*_HEADERS[2:], *_TIMES):
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        style = "dim" if run.missing else ""
        table.add_row(run.configuration.id, Text(_label(run), style), *_figures(run, baseline))
    return table


def configuration_markdown(runs: Sequence[ConfigurationRun]) -> str:
    """Give the table as a Markdown section."""
    baseline = runs[0].report
    rule = ("---", "---", *["---:"] * (len(_HEADERS) + len(_TIMES) - 2))
    rows = [(run.configuration.id, _label(run), *_figures(run, baseline)) for run in runs]
    lines = (f"| {' | '.join(row)} |" for row in ((*_HEADERS, *_TIMES), rule, *rows))
    note = f"\n{_NO_TIMES}\n" if any(run.remembered for run in runs) else ""
    return f"## {_title(baseline)}\n\n" + "\n".join(lines) + f"\n{note}"


def _title(baseline: Report | None) -> str:
    if baseline is None:
        return "Memory-Spark's configurations"
    dataset = baseline.dataset
    passages = sum(map(len, dataset.pools.values()))
    return (
        f"Memory-Spark's configurations on {dataset.name}: {len(dataset.queries)} queries, "
        f"{passages} passages; published: {_MAIN} on SciFact with upstream's own models"
    )


def _label(run: ConfigurationRun) -> str:
    configuration = run.configuration
    notes = [configuration.label]
    if configuration.same_as is not None:
        notes.append(f"the same as {configuration.same_as}")
    if configuration.at_head is not None:
        notes.append(f"upstream now runs {configuration.at_head} for it")
    if run.missing:
        notes.append(f"needs a {' and a '.join(run.missing)}")
    return "; ".join(notes)


def _figures(run: ConfigurationRun, baseline: Report | None) -> list[str]:
    reference = "" if baseline is None else _mean(baseline, _MAIN)
    published = run.configuration.published
    shown = "" if published is None else _number(published)
    report = run.report
    if report is None:
        return [_NOTHING, reference, "", "", *[""] * len(_OTHERS), shown, "", ""]
    test = None if run.against_baseline is None else run.against_baseline.tests[_MAIN]
    return [
        _mean(report, _MAIN),
        reference,
        *_difference(test),
        *(_mean(report, name) for name in _OTHERS),
        shown,
        *_times(run, report),
    ]


def _times(run: ConfigurationRun, report: Report) -> tuple[str, str]:
    if run.remembered:
        return _NOTHING, _NOTHING
    return f"{report.latency.p50:.1f}", f"{report.latency.p95:.1f}"


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
