"""The benchmark's tables, files and reliability pictures, beside published results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from types import MappingProxyType

from ekphory_lab.evaluation.datasets import LOCOMO_CATEGORIES
from ekphory_lab.evaluation.metrics import Estimate, PairedTest
from ekphory_lab.evaluation.reranking.benchmark import (
    PRECISIONS,
    READ,
    READ_COUNTS,
    ContenderResult,
    PrecisionThreshold,
    Reliability,
    ReliabilityBin,
    RerankedSet,
    RerankReport,
)
from ekphory_lab.evaluation.reranking.questions import DialogueScores
from ekphory_lab.evaluation.runner import Latency, to_json

# Published results on LoCoMo, to stand beside what is measured here.
#
# Source: the model card of IAAR-Shanghai/MemReranker-4B, "LOCOMO Memory Retrieval Benchmark". Its
# candidates come from another first stage (the best hundred of BGE-M3), over all ten conversations.

PUBLISHED_MEASURES = (
    "MAP",
    "MRR",
    "NDCG@1",
    "NDCG@3",
    "NDCG@10",
    "NDCG",
    "R@3",
    "R@5",
    "R@20",
    "F1",
)

PUBLISHED_ON_LOCOMO: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "BGE-v2-m3": (0.671, 0.699, 0.607, 0.672, 0.714, 0.736, 0.716, 0.768, 0.863, 0.504),
        "Qwen3-Reranker-0.6B": (
            *(0.643, 0.673, 0.576, 0.638, 0.689, 0.714, 0.681, 0.748, 0.857, 0.472),
        ),
        "Qwen3-Reranker-4B": (
            *(0.689, 0.716, 0.623, 0.691, 0.732, 0.750, 0.735, 0.796, 0.873, 0.522),
        ),
        "Qwen3-Reranker-8B": (
            *(0.721, 0.748, 0.666, 0.724, 0.759, 0.775, 0.763, 0.813, 0.880, 0.552),
        ),
        "GPT-4o-mini": (0.715, 0.742, 0.657, 0.719, 0.753, 0.770, 0.760, 0.812, 0.868, 0.544),
        "Gemini-3-Flash": (0.777, 0.797, 0.737, 0.778, 0.807, 0.816, 0.805, 0.847, 0.892, 0.622),
        "MemReranker-0.6B": (0.715, 0.738, 0.650, 0.717, 0.754, 0.770, 0.758, 0.809, 0.885, 0.555),
        "MemReranker-4B": (0.737, 0.760, 0.679, 0.739, 0.773, 0.786, 0.777, 0.824, 0.889, 0.577),
    }
)
"""Values in the order of `PUBLISHED_MEASURES`, by model."""


def published_rows(dataset: str) -> Mapping[str, Mapping[str, float]]:
    """Return the published values by model and measure; nothing for other sets than LoCoMo."""
    if not dataset.startswith("locomo"):
        return {}
    return {
        model: dict(zip(PUBLISHED_MEASURES, values, strict=True))
        for model, values in PUBLISHED_ON_LOCOMO.items()
    }


# The benchmark's tables as plain values, which the command line and the Markdown file show.

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
    """Return all tables of a report, set by set, and those of ekphory's own sets last."""
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


# A reliability diagram as SVG.

_SIDE = 320
_LEFT, _TOP = 52, 40
_WIDTH, _HEIGHT = _LEFT + _SIDE + 24, _TOP + _SIDE + 52
_LARGEST, _SMALLEST = 11.0, 2.5


def reliability_svg(found: Reliability, *, title: str) -> str:
    """Draw what was said against what was observed, a circle for each bin.

    The area of a circle grows with the number of candidates in its bin; on the diagonal what is
    said holds.
    """
    body = "\n".join((*_axes(), *_circles(found.bins)))
    error = f"ECE {found.all_candidates.equal_width:.3f}, {found.candidates:,} candidates"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" \
width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>
<text x="{_LEFT}" y="16" font-weight="bold">{escape(title)}</text>
<text x="{_LEFT}" y="31">{error}</text>
{body}
</svg>
"""


def _axes() -> Iterator[str]:
    right, bottom = _LEFT + _SIDE, _TOP + _SIDE
    yield (
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}" fill="none" stroke="#888"/>'
    )
    yield (
        f'<line x1="{_LEFT}" y1="{bottom}" x2="{right}" y2="{_TOP}" '
        'stroke="#bbb" stroke-dasharray="4 4"/>'
    )
    for step in range(0, 11, 2):
        x, y = _place(step / 10, step / 10)
        yield f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{step / 10:g}</text>'
        yield f'<text x="{_LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{step / 10:g}</text>'
    middle = _TOP + _SIDE / 2
    yield f'<text x="{_LEFT + _SIDE / 2}" y="{bottom + 38}" text-anchor="middle">probability</text>'
    yield (
        f'<text x="14" y="{middle}" text-anchor="middle" '
        f'transform="rotate(-90 14 {middle})">share that answers</text>'
    )


def _circles(bins: tuple[ReliabilityBin, ...]) -> Iterator[str]:
    points = [_place(each.said, each.right) for each in bins]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{path}" fill="none" stroke="#2b6cb0" stroke-width="1.5"/>'
    most = max((each.candidates for each in bins), default=1)
    for each, (x, y) in zip(bins, points, strict=True):
        radius = _SMALLEST + (_LARGEST - _SMALLEST) * (each.candidates / most) ** 0.5
        told = f"said {each.said:.3f}, right {each.right:.3f}, {each.candidates:,} candidates"
        yield (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="#2b6cb0" '
            f'fill-opacity=".6"><title>{told}</title></circle>'
        )


def _place(said: float, right: float) -> tuple[float, float]:
    return _LEFT + said * _SIDE, _TOP + (1 - right) * _SIDE


# The benchmark's report as JSON, and as Markdown with its reliability pictures.

_HEADING = """# Rerankers over the same candidates

Made by

    {command}

"""


def report_json(report: RerankReport) -> dict[str, object]:
    """Return the whole report as values that JSON can hold."""
    return {
        "version": report.version,
        "sets": [_set_json(each) for each in report.sets],
        "dialogue": [asdict(scores) for scores in report.dialogue],
        "languages": _set_json(report.languages),
    }


def write_markdown(report: RerankReport, file: Path, *, command: str) -> tuple[Path, ...]:
    """Write all tables to a Markdown file, and a picture for each contender and set beside it.

    Args:
        report: What was found.
        file: The Markdown file.
        command: What it was made by.

    Returns:
        The pictures.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    pictures = [
        (each, result, file.with_name(_picture_name(file, each, result)))
        for each in report.sets
        for result in each.results
        if result.reliability is not None
    ]
    for each, result, picture in pictures:
        if result.reliability is not None:
            title = f"{result.name} on {each.dataset.name}"
            svg = reliability_svg(result.reliability, title=title)
            picture.write_text(svg, encoding="utf-8")
    shown = "\n".join(map(markdown_table, rerank_tables(report)))
    links = "\n".join(
        f"![Reliability of {result.name} on {each.dataset.name}]({picture.name})"
        for each, result, picture in pictures
    )
    text = f"{_HEADING.format(command=command)}{shown}\n## Reliability\n\n{links}\n"
    file.write_text(text, encoding="utf-8")
    return tuple(picture for _, _, picture in pictures)


def markdown_table(table: ShownTable) -> str:
    """Return a table as a Markdown section."""
    return "\n".join(_lines(table)) + "\n"


def _lines(table: ShownTable) -> Iterator[str]:
    yield f"## {table.title}\n"
    if table.note:
        yield f"{table.note}\n"
    rule = ("---", *("---:" for _ in table.headers[1:]))
    for row in (table.headers, rule, *table.rows):
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


def _picture_name(file: Path, measured: RerankedSet, result: ContenderResult) -> str:
    name = f"{file.stem}-{measured.dataset.name}-{result.name}"
    return re.sub(r"[^\w.-]+", "-", name) + ".svg"


def _set_json(measured: RerankedSet) -> dict[str, object]:
    return {
        "dataset": measured.dataset.name,
        "candidates": asdict(measured.identity),
        "contenders": [_contender_json(result) for result in measured.results],
    }


def _contender_json(result: ContenderResult) -> dict[str, object]:
    compared, answerable = result.against_first_stage, result.answerable
    return {
        "name": result.name,
        "report": to_json(result.report),
        "against_first_stage": None if compared is None else asdict(compared),
        "reading_ms": {str(count): asdict(each) for count, each in result.reading.items()},
        "is_calibrated": result.is_calibrated,
        "reliability": None if result.reliability is None else asdict(result.reliability),
        "answerable_auroc": None if answerable is None else asdict(answerable),
    }
