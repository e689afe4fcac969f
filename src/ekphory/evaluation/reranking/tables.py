"""The benchmark's tables as plain values, which the command line and the Markdown file show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ekphory.evaluation.datasets import LOCOMO_CATEGORIES
from ekphory.evaluation.report import Latency
from ekphory.evaluation.reranking.benchmark import (
    READ,
    ContenderResult,
    RerankedSet,
    RerankReport,
)
from ekphory.evaluation.reranking.dialogue import DialogueScores
from ekphory.evaluation.reranking.latency import READ_COUNTS
from ekphory.evaluation.reranking.published import PUBLISHED_MEASURES, published_rows
from ekphory.evaluation.reranking.reliability import PRECISIONS, PrecisionThreshold
from ekphory.evaluation.stats import Estimate, PairedTest

_COMPARED = ("MAP", "MRR", "R@5")
_NOTHING = "-"
_PUBLISHED = (
    "* Published: measured by others, on all of LoCoMo and on other candidates (the best hundred "
    "of BGE-M3)."
)


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table.

    Attributes:
        title: What it shows.
        headers: Names of the columns; the first one is a name, the others are figures.
        rows: Cells of each row.
        note: What must be known to read it; may be empty.
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def rerank_tables(report: RerankReport) -> Iterator[ShownTable]:
    """Give all tables of a report, set by set, and those of ekphory's own sets last."""
    for each in report.sets:
        yield ranking_table(each)
        yield interval_table(each)
        yield difference_table(each)
        yield category_table(each)
        yield speed_table(each)
        yield calibration_table(each)
        yield threshold_table(each)
    yield dialogue_table(report.dialogue)
    yield language_table(report.languages)


def ranking_table(measured: RerankedSet) -> ShownTable:
    """Show the ranking measures, with published rows where there are any."""
    dataset = measured.dataset
    rows = [
        (result.name, *(number(each.mean) for each in _estimates(result)))
        for result in measured.results
    ]
    published = published_rows(dataset.name)
    for model, values in published.items():
        rows.append((f"{model} *", *(number(values[name]) for name in PUBLISHED_MEASURES)))
    return ShownTable(
        f"{dataset.name}: {len(dataset.queries)} questions, "
        f"the best {measured.identity.top} candidates of each",
        ("reranker", *PUBLISHED_MEASURES),
        tuple(rows),
        note=_PUBLISHED if published else "",
    )


def interval_table(measured: RerankedSet) -> ShownTable:
    """Show how sure the ranking measures are."""
    rows = ((result.name, *map(interval, _estimates(result))) for result in measured.results)
    return ShownTable(
        f"{measured.dataset.name}: 95 % intervals",
        ("reranker", *PUBLISHED_MEASURES),
        tuple(rows),
        note="By the bootstrap over questions.",
    )


def speed_table(measured: RerankedSet) -> ShownTable:
    """Show how long reading takes."""
    rows = (
        (result.name, *(_reading(result.reading.get(count)) for count in READ_COUNTS))
        for result in measured.results
    )
    return ShownTable(
        f"{measured.dataset.name}: milliseconds, p50 / p95",
        ("reranker", *(f"{count} candidates" for count in READ_COUNTS)),
        tuple(rows),
    )


def difference_table(measured: RerankedSet) -> ShownTable:
    """Show how each reranker differs from the first stage alone."""
    rows = []
    for result in measured.results:
        if result.against_first_stage is None:
            continue
        tests = result.against_first_stage.tests
        rows.append((result.name, *(_difference(tests[name]) for name in _COMPARED)))
    return ShownTable(
        f"{measured.dataset.name}: difference to no reranker",
        ("reranker", *_COMPARED),
        tuple(rows),
        note="With its 95 % interval and the p-value of a paired randomisation test.",
    )


def category_table(measured: RerankedSet) -> ShownTable:
    """Show MAP for each kind of question."""
    first = measured.results[0].report.categories
    known = first.keys() <= LOCOMO_CATEGORIES.keys()
    names = {name: LOCOMO_CATEGORIES[name] if known else name for name in first}
    headers = (f"{names[name]} ({group.queries})" for name, group in first.items())
    rows = []
    for result in measured.results:
        groups = (result.report.categories[name] for name in first)
        estimates = (group.estimates["MAP"] for group in groups)
        cells = (f"{number(each.mean)} ({interval(each)})" for each in estimates)
        rows.append((result.name, *cells))
    return ShownTable(
        f"{measured.dataset.name}: MAP by category", ("reranker", *headers), tuple(rows)
    )


def calibration_table(measured: RerankedSet) -> ShownTable:
    """Show calibration errors, and how well answerable questions are told."""
    return ShownTable(
        f"{measured.dataset.name}: calibration",
        (
            "reranker",
            "fitted",
            "ECE, equal width",
            "ECE, equal mass",
            "best hit, equal width",
            "best hit, equal mass",
            "AUROC answerable",
        ),
        tuple(_calibration_row(result) for result in measured.results),
        note=f"Over the first {READ} candidates of each question, 15 bins.",
    )


def threshold_table(measured: RerankedSet) -> ShownTable:
    """Show where to cut for a precision, and the share of the relevant candidates above."""
    rows = []
    for result in measured.results:
        found = result.reliability.thresholds if result.reliability is not None else ()
        cells = map(_threshold, found)
        rows.append((result.name, *cells))
    return ShownTable(
        f"{measured.dataset.name}: threshold for a precision (recall above it)",
        ("reranker", *map(number, PRECISIONS)),
        tuple(row for row in rows if len(row) > 1),
    )


def dialogue_table(scores: Sequence[DialogueScores]) -> ShownTable:
    """Show MRR with the dialogue before a question and without it."""
    kinds = list(scores[0].kinds)
    headers = (f"the {kind} left out ({scores[0].kinds[kind][0]})" for kind in kinds)
    rows = []
    for each in scores:
        by_kind = (
            f"{number(each.kinds[kind][2])} to {number(each.kinds[kind][1])}" for kind in kinds
        )
        overall = (
            f"{number(estimate.mean)} ({interval(estimate)})"
            for estimate in (each.without_context, each.with_context)
        )
        rows.append((each.contender, *overall, _difference(each.difference), *by_kind))
    return ShownTable(
        f"questions in a dialogue: MRR over {scores[0].questions} questions",
        ("reranker", "without context", "with context", "difference", *headers),
        tuple(rows),
    )


def language_table(measured: RerankedSet) -> ShownTable:
    """Show MRR language by language."""
    languages = list(measured.results[0].report.categories)
    rows = []
    for result in measured.results:
        found = (result.report.categories[name].estimates["MRR"] for name in languages)
        rows.append((result.name, *(number(each.mean) for each in found)))
    return ShownTable(
        "languages: MRR over ten questions, each with the same ten passages",
        ("reranker", *languages),
        tuple(rows),
        note="By chance it would be .293.",
    )


def number(value: float) -> str:
    """Write a figure with three digits and no leading zero."""
    return f"{value:.3f}".removeprefix("0")


def interval(estimate: Estimate) -> str:
    """Write the ends of a confidence interval."""
    return f"{number(estimate.low)} to {number(estimate.high)}"


def _estimates(result: ContenderResult) -> list[Estimate]:
    return [result.report.overall.estimates[name] for name in PUBLISHED_MEASURES]


def _calibration_row(result: ContenderResult) -> tuple[str, ...]:
    found, answerable = result.reliability, result.answerable
    errors: tuple[str, ...] = (_NOTHING,) * 4
    if found is not None:
        errors = tuple(
            number(value)
            for each in (found.all_candidates, found.best)
            for value in (each.equal_width, each.equal_mass)
        )
    told = _NOTHING if answerable is None else f"{number(answerable.mean)} ({interval(answerable)})"
    return (result.name, "yes" if result.is_calibrated else "no", *errors, told)


def _threshold(found: PrecisionThreshold) -> str:
    if found.threshold is None:
        return _NOTHING
    return f"{number(found.threshold)} ({number(found.recall)})"


def _difference(test: PairedTest) -> str:
    p_value = "p < .001" if test.p_value < 0.001 else f"p = {number(test.p_value)}"
    return f"{_signed(test.difference)} ({_signed(test.low)} to {_signed(test.high)}), {p_value}"


def _signed(value: float) -> str:
    return f"{'-' if round(value, 3) < 0 else '+'}{number(abs(value))}"


def _reading(latency: Latency | None) -> str:
    return _NOTHING if latency is None else f"{latency.p50:.1f} / {latency.p95:.1f}"
