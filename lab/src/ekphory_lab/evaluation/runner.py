"""Running a system over a dataset, its report, and the comparison of two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol, TypeAlias

import numpy as np

from ekphory import __version__
from ekphory.errors import InvalidInput
from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.pipeline import NO_OPTIONAL_MODELS, OptionalModels
from ekphory_lab.evaluation import metrics
from ekphory_lab.evaluation.datasets import Dataset, EvaluationQuery, Passage

# The door that every system goes through to be measured: baseline, product or competitor.

Scored: TypeAlias = tuple[str, float]
"""A passage's id and its score."""

Setting: TypeAlias = str | int | float | bool | None


Retriever: TypeAlias = Callable[[EvaluationQuery, int], list[Scored]]
"""Searches one pool: at most so many passages, best first, each once."""


class RetrieverFactory(Protocol):
    """A system: makes the retriever of each pool, all of them before the first query."""

    @property
    def name(self) -> str:
        """What the system is called in a report."""

    @property
    def configuration(self) -> Mapping[str, Setting]:
        """Everything that decides its results, for the report."""

    def retriever(self, pool: str, passages: Sequence[Passage], /) -> Retriever:
        """Index a pool and give its retriever."""


# What an evaluation found: scores per query, per category and overall, and how sure they are.

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

    def missed(self, cutoff: int) -> bool:
        """Whether a relevant passage is not among the first `cutoff`."""
        return any(rank is None or rank > cutoff for rank in self.relevant_ranks.values())


@dataclass(frozen=True, slots=True)
class GroupScores:
    """Means over a group of queries.

    Attributes:
        queries: How many there are.
        scores: Mean and confidence interval by measure.
    """

    queries: int
    scores: Mapping[str, metrics.Estimate]


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
    calibration: metrics.CalibrationScores | None
    outcomes: tuple[QueryOutcome, ...]
    latency: metrics.Latency
    index_seconds: float
    version: str

    def mean(self, measure: str) -> float:
        """Return a measure's mean over all queries."""
        return self.overall.scores[measure].mean

    def column(self, measure: str) -> metrics.FloatArray:
        """Return a measure's value for each query, shape (queries,)."""
        return np.array([outcome.scores[measure] for outcome in self.outcomes], np.float64)


def misses(report: Report, *, cutoff: int = MISS_CUTOFF) -> tuple[QueryOutcome, ...]:
    """Return the queries with a relevant passage below the cutoff, those ranked lowest first.

    Queries that are equally bad keep the dataset's order.
    """
    missed = [outcome for outcome in report.outcomes if outcome.missed(cutoff)]
    return tuple(sorted(missed, key=_first_found))


def to_json(report: Report) -> dict[str, object]:
    """Return the whole report for JSON; rankings are in the TREC run file."""
    return {
        "system": report.system,
        "version": report.version,
        "configuration": report.configuration,
        "dataset": dataset_json(report.dataset),
        "depth": report.depth,
        "measures": list(report.overall.scores),
        "overall": report.overall,
        "categories": report.categories,
        "calibration": report.calibration,
        "latency_ms": report.latency,
        "index_seconds": round(report.index_seconds, 3),
        "queries": [
            {
                "pool": outcome.query.pool,
                "id": outcome.query.id,
                "category": outcome.query.category,
                "text": outcome.query.text,
                "scores": outcome.scores,
                "relevant_ranks": outcome.relevant_ranks,
                "milliseconds": round(outcome.milliseconds, 3),
            }
            for outcome in report.outcomes
        ],
    }


def dataset_json(dataset: Dataset) -> dict[str, object]:
    """Return what a set is and where it comes from, for JSON."""
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
        "passages": dataset.size,
        "queries": len(dataset.queries),
    }


def _first_found(outcome: QueryOutcome) -> float:
    found = [1 / rank for rank in outcome.relevant_ranks.values() if rank is not None]
    return sum(found) / len(outcome.relevant_ranks)


# Two runs over the same queries, compared measure by measure.


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a second run differs from a first.

    Attributes:
        first: Name of the system that is compared with.
        second: Name of the system that is compared.
        queries: How many there are.
        tests: Difference, second minus first, by measure.
    """

    first: str
    second: str
    queries: int
    tests: Mapping[str, metrics.PairedTest]


def compare(first: Report, second: Report) -> Comparison:
    """Compare two runs over the same queries in every measure that both have."""
    shared = [name for name in first.overall.scores if name in second.overall.scores]
    tests = {name: metrics.paired_test(first.column(name), second.column(name)) for name in shared}
    return Comparison(first.system, second.system, len(first.outcomes), tests)


# Running a system over a dataset: index every pool, put every query, score the rankings.

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told what is being done ("index" or "search"), how much is done, and how much there is."""

DEPTH = 100


def silent(activity: str, done: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a measurement is made with.

    Attributes:
        embedder: Embedder of all that need one; None takes the bundled one.
        models: Reranker and language model, where there are any.
        progress: Is told how far things are.
    """

    embedder: EmbeddingModel | None = None
    models: OptionalModels = NO_OPTIONAL_MODELS
    progress: Progress = silent


def evaluate(
    dataset: Dataset,
    system: RetrieverFactory,
    *,
    measures: Sequence[metrics.Measure] = metrics.CONVERSATION_MEASURES,
    depth: int = DEPTH,
    progress: Progress = silent,
) -> Report:
    """Measure a system.

    All pools are indexed before the first query, so a system that keeps them in one store is
    searched with all of them inside. Each query is put once, to its own pool; the time of the
    first one is counted like any other.

    Args:
        dataset: What to measure on.
        system: What to measure.
        measures: Which measures to take, over the first `depth` passages.
        depth: How many passages each search asks for, at least 1.
        progress: Is told after each pool and each query.

    Raises:
        InvalidInput: The depth is below 1, or the system gave an id twice or from elsewhere.
    """
    if depth < 1:
        raise InvalidInput("depth", depth, "nothing would be searched", "Give 1 or more.")
    started = perf_counter()
    retrievers = _index(dataset, system, progress)
    index_seconds = perf_counter() - started
    known = {pool: {p.id for p in passages} for pool, passages in dataset.pools.items()}
    outcomes = []
    for done, query in enumerate(dataset.queries, start=1):
        started = perf_counter()
        found = retrievers[query.pool](query, depth)
        milliseconds = (perf_counter() - started) * 1_000
        ranking = tuple(found[:depth])
        _check(ranking, known=known[query.pool], query=query)
        gains = dataset.qrels[query.key]
        outcomes.append(_outcome(query, ranking, gains, measures, milliseconds))
        progress("search", done, len(dataset.queries))
    return Report(
        system=system.name,
        configuration=system.configuration,
        dataset=dataset,
        depth=depth,
        overall=score_group(outcomes),
        categories=score_categories(outcomes),
        calibration=_calibration(system, outcomes),
        outcomes=tuple(outcomes),
        latency=metrics.Latency.of([outcome.milliseconds for outcome in outcomes]),
        index_seconds=index_seconds,
        version=__version__,
    )


def _index(dataset: Dataset, system: RetrieverFactory, progress: Progress) -> dict[str, Retriever]:
    retrievers = {}
    for done, (pool, passages) in enumerate(dataset.pools.items(), start=1):
        retrievers[pool] = system.retriever(pool, passages)
        progress("index", done, len(dataset.pools))
    return retrievers


def _check(ranking: Iterable[Scored], *, known: set[str], query: EvaluationQuery) -> None:
    seen: set[str] = set()
    for passage_id, _ in ranking:
        if passage_id in seen or passage_id not in known:
            fault = "came twice" if passage_id in seen else "is not in the pool that was searched"
            raise InvalidInput(
                "ranking",
                passage_id,
                f"for query {query.id!r} of pool {query.pool!r} this passage {fault}",
                "A retriever gives ids of its own pool, each once.",
            )
        seen.add(passage_id)


def _outcome(
    query: EvaluationQuery,
    ranking: tuple[Scored, ...],
    gains: metrics.Qrels,
    measures: Sequence[metrics.Measure],
    milliseconds: float,
) -> QueryOutcome:
    ids = [passage_id for passage_id, _ in ranking]
    ranks = {passage_id: rank for rank, passage_id in enumerate(ids, start=1)}
    return QueryOutcome(
        query=query,
        ranking=ranking,
        relevant_ranks={
            passage_id: ranks.get(passage_id) for passage_id, gain in gains.items() if gain > 0
        },
        scores={measure.name: measure.score(gains, ids) for measure in measures},
        milliseconds=milliseconds,
    )


class ScoredQuery(Protocol):
    """A query with a value for each measure, the same measures for every query of a run."""

    @property
    def query(self) -> EvaluationQuery:
        """The query."""

    @property
    def scores(self) -> Mapping[str, float]:
        """Value by measure."""


def score_categories(outcomes: Sequence[ScoredQuery]) -> dict[str, GroupScores]:
    """Return the means of each category, in the order of their names; none without categories."""
    by_category: dict[str, list[ScoredQuery]] = {}
    for outcome in outcomes:
        by_category.setdefault(outcome.query.category, []).append(outcome)
    if by_category.keys() == {""}:
        return {}
    return {name: score_group(by_category[name]) for name in sorted(by_category)}


def _calibration(
    system: RetrieverFactory, outcomes: Sequence[QueryOutcome]
) -> metrics.CalibrationScores | None:
    if system.configuration.get("scores") != metrics.PROBABILITIES:
        return None
    return metrics.calibration_scores(
        [
            [(score, passage_id in outcome.relevant_ranks) for passage_id, score in outcome.ranking]
            for outcome in outcomes
        ]
    )


def score_group(outcomes: Sequence[ScoredQuery]) -> GroupScores:
    """Return the means over at least one query, with their confidence intervals."""
    names = list(outcomes[0].scores)
    scores = np.array([[outcome.scores[name] for name in names] for outcome in outcomes])
    estimates = metrics.bootstrap_intervals(scores)
    return GroupScores(len(outcomes), dict(zip(names, estimates, strict=True)))
