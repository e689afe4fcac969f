"""What an evaluation found: scores per query, per category and overall, and how sure they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from ekphory.evaluation.calibration import CalibrationScores
from ekphory.evaluation.datasets import Dataset, EvaluationQuery
from ekphory.evaluation.retriever import Scored, Setting
from ekphory.evaluation.stats import Estimate

MISS_CUTOFF = 10
"""A relevant passage below this rank is a miss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOutcome:
    """What one query gave.

    Attributes:
        query: The query.
        ranking: Passages with their scores, best first.
        relevant_ranks: Rank, from 1, of each relevant passage; None where it was not found.
        scores: Value by measure.
        milliseconds: How long the search took.
    """

    query: EvaluationQuery
    ranking: tuple[Scored, ...]
    relevant_ranks: Mapping[str, int | None]
    scores: Mapping[str, float]
    milliseconds: float

    def missed(self, *, cutoff: int = MISS_CUTOFF) -> bool:
        """Whether a relevant passage is not among the first `cutoff`."""
        return any(rank is None or rank > cutoff for rank in self.relevant_ranks.values())


@dataclass(frozen=True, slots=True)
class GroupScores:
    """Means over a group of queries.

    Attributes:
        queries: How many there are.
        estimates: Mean and confidence interval by measure.
    """

    queries: int
    estimates: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Latency:
    """How long one search took, in milliseconds.

    Attributes:
        p50: The median.
        p95: The 95th percentile.
        mean: The mean.
    """

    p50: float
    p95: float
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One system measured on one dataset.

    Attributes:
        system: The system's name.
        configuration: Everything that decides the system's results.
        dataset: What it was measured on.
        depth: How many passages each search asked for.
        overall: Means over all queries.
        categories: Means per category, in the order of the categories' names.
        without_label_errors: Means over the queries whose labels are not known to be wrong; None
            where none is known to be.
        calibration: How far the scores are from what is observed; None where they are no
            probabilities.
        outcomes: What each query gave.
        latency: How long a search took.
        index_seconds: How long all pools took to be indexed.
        version: Version of ekphory that measured.
    """

    system: str
    configuration: Mapping[str, Setting]
    dataset: Dataset
    depth: int
    overall: GroupScores
    categories: Mapping[str, GroupScores]
    without_label_errors: GroupScores | None
    calibration: CalibrationScores | None
    outcomes: tuple[QueryOutcome, ...]
    latency: Latency
    index_seconds: float
    version: str


def misses(report: Report, *, cutoff: int = MISS_CUTOFF) -> tuple[QueryOutcome, ...]:
    """Give the queries with a relevant passage below the cutoff, those ranked lowest first.

    Queries that are equally bad keep the dataset's order.
    """
    missed = [outcome for outcome in report.outcomes if outcome.missed(cutoff=cutoff)]
    return tuple(sorted(missed, key=_first_found))


def to_json(report: Report) -> dict[str, object]:
    """Give the whole report as values that JSON can hold; rankings are in the TREC run file."""
    return {
        "system": report.system,
        "version": report.version,
        "configuration": dict(report.configuration),
        "dataset": _dataset_json(report.dataset),
        "depth": report.depth,
        "measures": list(report.overall.estimates),
        "overall": _group_json(report.overall),
        "categories": {name: _group_json(group) for name, group in report.categories.items()},
        "without_label_errors": _sound_json(report.without_label_errors),
        "calibration": None if report.calibration is None else asdict(report.calibration),
        "latency_ms": {
            "p50": round(report.latency.p50, 3),
            "p95": round(report.latency.p95, 3),
            "mean": round(report.latency.mean, 3),
        },
        "index_seconds": round(report.index_seconds, 3),
        "queries": [_outcome_json(outcome) for outcome in report.outcomes],
    }


def _first_found(outcome: QueryOutcome) -> float:
    found = [1 / rank for rank in outcome.relevant_ranks.values() if rank is not None]
    return sum(found) / len(outcome.relevant_ranks)


def _group_json(group: GroupScores) -> dict[str, object]:
    return {"queries": group.queries, "scores": _estimates_json(group.estimates.items())}


def _sound_json(group: GroupScores | None) -> dict[str, object] | None:
    return None if group is None else _group_json(group)


def _estimates_json(estimates: Iterable[tuple[str, Estimate]]) -> dict[str, dict[str, float]]:
    return {
        name: {"mean": estimate.mean, "low": estimate.low, "high": estimate.high}
        for name, estimate in estimates
    }


def _dataset_json(dataset: Dataset) -> dict[str, object]:
    return {
        "name": dataset.name,
        "sha256": dataset.sha256,
        "verified": dataset.verified,
        "files": [
            {"name": file.name, "sha256": file.sha256, "verified": file.verified}
            for file in dataset.files
        ],
        "source": dataset.source.title,
        "licence": dataset.source.licence,
        "obtain": dataset.source.obtain,
        "pools": len(dataset.pools),
        "passages": sum(len(passages) for passages in dataset.pools.values()),
        "queries": len(dataset.queries),
    }


def _outcome_json(outcome: QueryOutcome) -> dict[str, object]:
    return {
        "pool": outcome.query.pool,
        "id": outcome.query.id,
        "category": outcome.query.category,
        "text": outcome.query.text,
        "scores": dict(outcome.scores),
        "relevant_ranks": dict(outcome.relevant_ranks),
        "milliseconds": round(outcome.milliseconds, 3),
    }
