"""An ablation for people: a line for each variation, as a rich table or as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from ekphory.evaluation.ablation import Ablation, AblationRow

_HEADERS = ("variation", "{main}", "difference", "95 %", "p", "{second}", "p50 ms", "p95 ms")


def ablation_table(ablation: Ablation) -> Table:
    """Show one dataset's rows; the first is the default pipeline."""
    table = Table(title=_title(ablation), title_justify="left")
    headers, *lines = _cells(ablation)
    for place, header in enumerate(headers):
        table.add_column(header, justify="left" if place == 0 else "right")
    for line in lines:
        table.add_row(*line)
    return table


def ablation_markdown(ablation: Ablation) -> str:
    """Give one dataset's rows as a Markdown section."""
    headers, *lines = _cells(ablation)
    rule = ["---", *["---:"] * (len(headers) - 1)]
    rows = "\n".join(f"| {' | '.join(row)} |" for row in (headers, rule, *lines))
    return f"## {_title(ablation)}\n\n{rows}\n"


def _title(ablation: Ablation) -> str:
    dataset = ablation.benchmark.dataset
    passages = sum(map(len, dataset.pools.values()))
    return f"{dataset.name}: {len(dataset.queries)} queries, {passages:,} passages"


def _cells(ablation: Ablation) -> Iterator[list[str]]:
    main, second = ablation.benchmark.main, ablation.benchmark.second
    yield [header.format(main=main, second=second) for header in _HEADERS]
    for row in ablation.rows:
        scores, latency = row.report.overall.estimates, row.report.latency
        yield [
            row.variation.name,
            _number(scores[main].mean),
            *_difference(row, main),
            _number(scores[second].mean),
            f"{latency.p50:.1f}",
            f"{latency.p95:.1f}",
        ]


def _difference(row: AblationRow, measure: str) -> tuple[str, str, str]:
    if row.difference is None:
        return "", "", ""
    test = row.difference.tests[measure]
    p_value = "<.001" if test.p_value < 0.001 else _number(test.p_value)
    return _signed(test.difference), f"{_signed(test.low)} to {_signed(test.high)}", p_value


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{_number(abs(value))}"


def _number(value: float) -> str:
    text = f"{value:.3f}"
    return text.removeprefix("0") if text != "0.000" else ".000"
