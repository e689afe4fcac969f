"""The benchmark's tables, files and reliability pictures, beside published results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from pathlib import Path

from ekphory_lab.evaluation import tables
from ekphory_lab.evaluation.datasets import LOCOMO_CATEGORIES
from ekphory_lab.evaluation.reranking import benchmark
from ekphory_lab.evaluation.runner import to_json

# Published results on LoCoMo, to stand beside what is measured here.
#
# Source: the model card of IAAR-Shanghai/MemReranker-4B, "LOCOMO Memory Retrieval Benchmark". Its
# candidates come from another first stage (the best hundred of BGE-M3), over all ten conversations.

_FOLDER = Path(__file__).parent
_PUBLISHED_ROWS = (_FOLDER / "published_on_locomo.txt").read_text(encoding="utf-8")
_, *PUBLISHED_MEASURES = _PUBLISHED_ROWS.splitlines()[0].split()
PUBLISHED_ON_LOCOMO: Mapping[str, Mapping[str, float]] = {
    model: dict(zip(PUBLISHED_MEASURES, map(float, figures), strict=True))
    for model, *figures in map(str.split, _PUBLISHED_ROWS.splitlines()[1:])
}
"""Values by model and measure."""


def published_rows(dataset: str) -> Mapping[str, Mapping[str, float]]:
    """Return the published values by model and measure; nothing for other sets than LoCoMo."""
    return PUBLISHED_ON_LOCOMO if dataset.startswith("locomo") else {}


# The benchmark's tables as plain values, which the command line and the Markdown file show.

_COMPARED = ("MAP", "MRR", "R@5")
_INTERVALS = "With 95 % intervals, by the bootstrap over questions."
_PUBLISHED = (
    " * Published: measured by others, on all of LoCoMo and on other candidates (the best hundred "
    "of BGE-M3)."
)


def rerank_tables(report: benchmark.RerankReport) -> Iterator[tables.ReportTable]:
    """Return all tables of a report, set by set, and those of ekphory's own sets last."""
    for each in report.sets:
        yield from set_tables(each)
    questions = report.dialogue[0].questions
    yield tables.records_table(
        f"questions in a dialogue: MRR over {questions} questions", report.dialogue
    )
    yield _table(
        "languages: MRR over ten questions, each with the same ten passages",
        report.languages.results,
        lambda result: {
            language: group.scores["MRR"].mean
            for language, group in result.report.categories.items()
        },
        note="By chance it would be .293.",
    )


def set_tables(measured: benchmark.RerankedSet) -> Iterator[tables.ReportTable]:
    """Show one set: order, with published rows where there are any, speed, and calibration."""
    name, results = measured.dataset.name, measured.results
    yield _order_table(measured)
    yield _table(
        f"{name}: difference to no reranker",
        [result for result in results if result.against_first_stage is not None],
        _differences,
        note="With its 95 % interval and the p-value of a paired randomisation test.",
    )
    if categories := results[0].report.categories:
        known = LOCOMO_CATEGORIES if categories.keys() <= LOCOMO_CATEGORIES.keys() else {}
        yield _table(
            f"{name}: MAP by category",
            results,
            lambda result: {
                f"{known.get(each, each)} ({group.queries})": group.scores["MAP"]
                for each, group in result.report.categories.items()
            },
        )
    yield _table(
        f"{name}: milliseconds, p50 / p95",
        results,
        lambda result: {
            f"{count} candidates": result.reading.get(count) for count in benchmark.READ_COUNTS
        },
    )
    yield _table(
        f"{name}: calibration",
        results,
        _calibration,
        note=f"Over the first {benchmark.READ} candidates of each question, 15 bins.",
    )
    yield _table(f"{name}: threshold for a precision (recall above it)", results, _thresholds)


def _order_table(measured: benchmark.RerankedSet) -> tables.ReportTable:
    published = published_rows(measured.dataset.name)
    records: list[Mapping[str, object]] = [
        {
            "reranker": result.name,
            **{each: result.report.overall.scores[each] for each in PUBLISHED_MEASURES},
        }
        for result in measured.results
    ]
    records += [{"reranker": f"{model} *", **values} for model, values in published.items()]
    return tables.records_table(
        f"{measured.dataset.name}: {len(measured.dataset.queries)} questions, "
        f"the best {measured.identity.top} candidates of each, by {measured.identity.embedder}",
        records,
        note=_INTERVALS + (_PUBLISHED if published else ""),
    )


def _table(
    title: str,
    results: Iterable[benchmark.ContenderResult],
    figures: Callable[[benchmark.ContenderResult], Mapping[str, object]],
    *,
    note: str = "",
) -> tables.ReportTable:
    records = ({"reranker": result.name, **figures(result)} for result in results)
    return tables.records_table(title, records, note=note)


def _differences(result: benchmark.ContenderResult) -> Mapping[str, object]:
    compared = result.against_first_stage
    return {} if compared is None else {each: compared.tests[each] for each in _COMPARED}


def _calibration(result: benchmark.ContenderResult) -> Mapping[str, object]:
    found = result.reliability
    return {
        "fitted": result.is_calibrated,
        "ECE, equal width": found and found.all_candidates.equal_width,
        "ECE, equal mass": found and found.all_candidates.equal_mass,
        "best hit, equal width": found and found.best.equal_width,
        "best hit, equal mass": found and found.best.equal_mass,
        "AUROC answerable": result.answerable,
    }


def _thresholds(result: benchmark.ContenderResult) -> Mapping[str, object]:
    found = () if result.reliability is None else result.reliability.thresholds
    return {
        tables.format_figure(each.precision): None
        if each.threshold is None
        else f"{tables.format_figure(each.threshold)} ({tables.format_figure(each.recall)})"
        for each in found
    }


# A reliability diagram as SVG.

_SIDE = 320
_LEFT, _TOP = 52, 40
"""Side and corner of the square in `reliability.svg`, which has its axes."""
_LARGEST, _SMALLEST = 11.0, 2.5


def reliability_svg(found: benchmark.Reliability, *, title: str) -> str:
    """Draw what was said against what was observed, a circle for each bin.

    The area of a circle grows with the number of candidates in its bin; on the diagonal what is
    said holds.
    """
    error = f"ECE {found.all_candidates.equal_width:.3f}, {found.candidates:,} candidates"
    points = "\n".join(_circles(found.bins))
    template = (_FOLDER / "reliability.svg").read_text(encoding="utf-8")
    return template.format(title=escape(title), error=error, points=points)


def _circles(bins: tuple[benchmark.ReliabilityBin, ...]) -> Iterator[str]:
    points = [(_LEFT + each.said * _SIDE, _TOP + (1 - each.right) * _SIDE) for each in bins]
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


# The benchmark's report as JSON, and as Markdown with its reliability pictures.


def report_json(report: benchmark.RerankReport) -> dict[str, object]:
    """Return the whole report for JSON."""
    return {
        "version": report.version,
        "sets": [_set_json(each) for each in report.sets],
        "dialogue": report.dialogue,
        "languages": _set_json(report.languages),
    }


def write_report(report: benchmark.RerankReport, file: Path, *, command: str) -> tuple[Path, ...]:
    """Write all tables to a Markdown file, and a picture for each contender and set beside it.

    Args:
        report: What was found.
        file: The Markdown file.
        command: What it was made by.

    Returns:
        The pictures.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    links: list[str] = []
    pictures: list[Path] = []
    for result in (result for each in report.sets for result in each.results):
        if result.reliability is None:
            continue
        dataset = result.report.dataset.name
        title = f"{result.name} on {dataset}"
        name = re.sub(r"[^\w.-]+", "-", f"{file.stem}-{dataset}-{result.name}")
        pictures.append(file.with_name(f"{name}.svg"))
        pictures[-1].write_text(reliability_svg(result.reliability, title=title), encoding="utf-8")
        links.append(f"![Reliability of {title}]({pictures[-1].name})\n")
    heading = f"# Rerankers over the same candidates\n\nMade by\n\n    {command}\n\n"
    end = f"\n## Reliability\n\n{''.join(links)}"
    tables.write_markdown(file, heading, rerank_tables(report), end)
    return tuple(pictures)


def _set_json(measured: benchmark.RerankedSet) -> dict[str, object]:
    return {
        "dataset": measured.dataset.name,
        "candidates": measured.identity,
        "contenders": [
            {
                "name": result.name,
                "report": to_json(result.report),
                "against_first_stage": result.against_first_stage,
                "reading_ms": result.reading,
                "is_calibrated": result.is_calibrated,
                "reliability": result.reliability,
                "answerable_auroc": result.answerable,
            }
            for result in measured.results
        ],
    }
