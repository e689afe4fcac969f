"""Two runs over the same queries, compared measure by measure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ekphory.errors import DatasetError
from ekphory.evaluation.report import Report, to_json
from ekphory.evaluation.stats import PairedTest, paired_test


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """The scores of one run, query by query.

    Attributes:
        system: The system's name.
        scores: Value by measure, by query key.
    """

    system: str
    scores: Mapping[tuple[str, str], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a second run differs from a first.

    Attributes:
        first: Name of the system that is compared with.
        second: Name of the system that is compared.
        queries: How many queries both answered.
        tests: Difference, second minus first, by measure.
    """

    first: str
    second: str
    queries: int
    tests: Mapping[str, PairedTest]


def score_table(report: Report) -> ScoreTable:
    """Take the scores out of a report."""
    scores = {outcome.query.key: outcome.scores for outcome in report.outcomes}
    return ScoreTable(report.system, scores)


def compare(first: ScoreTable, second: ScoreTable, *, seed: int = 0) -> Comparison:
    """Compare two runs in every measure that both have.

    Raises:
        DatasetError: The runs have different queries, or no measure in common.
    """
    if first.scores.keys() != second.scores.keys():
        common = len(first.scores.keys() & second.scores.keys())
        raise DatasetError(
            f"{first.system} has {len(first.scores)} queries and {second.system} "
            f"{len(second.scores)}, of which {common} are the same. Compare runs over one dataset "
            "with the same categories."
        )
    keys = list(first.scores)
    tests = {
        name: paired_test(_column(first, keys, name), _column(second, keys, name), seed=seed)
        for name in _shared_measures(first, second)
    }
    return Comparison(first.system, second.system, len(keys), tests)


def write_reports(reports: tuple[Report, ...], path: Path) -> None:
    """Write reports to one JSON file: an object with a list under `reports`."""
    document = {"reports": [to_json(report) for report in reports]}
    # ASCII escapes keep lone surrogates of the data writable.
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")


def read_score_tables(path: Path) -> tuple[ScoreTable, ...]:
    """Read the scores of all reports in a file that `write_reports` wrote.

    Raises:
        DatasetError: The file is missing, or is not such a file.
    """
    try:
        document = json.loads(path.read_bytes())
        return tuple(_score_table(report) for report in document["reports"])
    except FileNotFoundError as error:
        raise DatasetError(f"{path}: no such file. Give the JSON file of a run.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DatasetError(
            f"{path}: not the JSON file of an evaluation ({type(error).__name__}: {error}). "
            "Give a file that `ekphory eval … --json FILE` wrote."
        ) from error


def _score_table(report: Mapping[str, object]) -> ScoreTable:
    rows = report["queries"]
    if not isinstance(rows, list) or not rows:
        raise ValueError("no queries in it")
    scores = {
        (str(row["pool"]), str(row["id"])): {
            str(name): float(value) for name, value in row["scores"].items()
        }
        for row in rows
    }
    return ScoreTable(str(report["system"]), scores)


def _shared_measures(first: ScoreTable, second: ScoreTable) -> list[str]:
    one, other = (next(iter(table.scores.values())) for table in (first, second))
    names = [name for name in one if name in other]
    if not names:
        raise DatasetError(f"{first.system} and {second.system} have no measure in common.")
    return names


def _column(
    table: ScoreTable, keys: list[tuple[str, str]], name: str
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([table.scores[key][name] for key in keys], np.float64)
