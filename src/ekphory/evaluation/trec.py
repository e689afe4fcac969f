"""Run and qrels files in TREC's form, which trec_eval, ir_measures and others read.

A topic is `pool/id`, or the bare id where the pool has no name. White space, `%` and, inside a
pool or id, `/` are written as percent escapes, because the form separates its columns by spaces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

import numpy as np

from ekphory.errors import DatasetError
from ekphory.evaluation.datasets import Dataset
from ekphory.evaluation.report import Report
from ekphory.evaluation.retriever import Scored

Run: TypeAlias = Mapping[tuple[str, str], tuple[Scored, ...]]
"""Ranking by query key."""

_UNSAFE = re.compile(r"[\s%/]")


def write_run(report: Report, path: Path) -> None:
    """Write the rankings of a report, one `topic Q0 passage rank score system` per line.

    The tools order a run by score and not by rank, and trec_eval keeps scores in 32 bits, so a
    score that does not fall below the one before it there is written as the next smaller number.
    """
    system = _escape(report.system)
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for outcome in report.outcomes:
            topic = topic_of(outcome.query.key)
            last = np.float32(np.inf)
            for rank, (passage_id, score) in enumerate(outcome.ranking, start=1):
                last = min(np.float32(score), np.nextafter(last, np.float32(-np.inf)))
                stream.write(f"{topic} Q0 {_escape(passage_id)} {rank} {float(last)!r} {system}\n")


def read_run(path: Path) -> Run:
    """Read a run file; rankings are ordered by score, equal scores by rank.

    Raises:
        DatasetError: A line does not have the six columns, or rank or score is no number.
    """
    entries: dict[tuple[str, str], list[tuple[float, int, str]]] = {}
    with path.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                key, entry = _read_line(line, place=f"{path.name}:{number}")
                entries.setdefault(key, []).append(entry)
    return {
        key: tuple((passage_id, -negated) for negated, _, passage_id in sorted(ranking))
        for key, ranking in entries.items()
    }


def write_qrels(dataset: Dataset, path: Path) -> None:
    """Write the judgements, one `topic 0 passage gain` per line, to go with a run file."""
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for query in dataset.queries:
            for passage_id, gain in dataset.qrels[query.key].items():
                stream.write(f"{topic_of(query.key)} 0 {_escape(passage_id)} {gain}\n")


def topic_of(key: tuple[str, str]) -> str:
    """Give the topic of a query."""
    pool, query_id = key
    return f"{_escape(pool)}/{_escape(query_id)}" if pool else _escape(query_id)


def key_of(topic: str) -> tuple[str, str]:
    """Give the pool and id of a topic."""
    pool, _, query_id = topic.rpartition("/")
    return unquote(pool), unquote(query_id)


def _read_line(line: str, *, place: str) -> tuple[tuple[str, str], tuple[float, int, str]]:
    cells = line.split()
    if len(cells) != 6:
        raise DatasetError(f"{place}: {len(cells)} columns, not the 6 of a TREC run.")
    topic, _, passage_id, rank, score, _ = cells
    try:
        return key_of(topic), (-float(score), int(rank), unquote(passage_id))
    except ValueError as error:
        raise DatasetError(f"{place}: rank and score must be numbers ({error}).") from error


def _escape(text: str) -> str:
    return _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), text)
