"""The benchmark's report as JSON, and as Markdown with its reliability pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from ekphory.evaluation.report import to_json
from ekphory.evaluation.reranking.benchmark import ContenderResult, RerankedSet, RerankReport
from ekphory.evaluation.reranking.reliability_picture import reliability_svg
from ekphory.evaluation.reranking.tables import ShownTable, rerank_tables

_HEADING = """# Rerankers over the same candidates

Made by

    {command}

"""


def report_json(report: RerankReport) -> dict[str, object]:
    """Give the whole report as values that JSON can hold."""
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
    """Give a table as a Markdown section."""
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
