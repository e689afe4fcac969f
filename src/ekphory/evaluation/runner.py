"""Running a system over a dataset: index every pool, put every query, score the rankings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import TypeAlias

import numpy as np

from ekphory import __version__
from ekphory.errors import InvalidInput
from ekphory.evaluation.calibration import (
    PROBABILITIES,
    CalibrationScores,
    calibration_scores,
)
from ekphory.evaluation.datasets import Dataset, EvaluationQuery
from ekphory.evaluation.metrics import CONVERSATION_MEASURES, Measure, Qrels
from ekphory.evaluation.report import GroupScores, Latency, QueryOutcome, Report
from ekphory.evaluation.retriever import Retriever, RetrieverFactory, Scored
from ekphory.evaluation.stats import bootstrap_intervals

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told what is being done ("index" or "search"), how much is done, and how much there is."""

DEPTH = 100


def silent(activity: str, done: int, total: int) -> None:
    """Report no progress."""


def evaluate(
    dataset: Dataset,
    system: RetrieverFactory,
    *,
    measures: Sequence[Measure] = CONVERSATION_MEASURES,
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
        ranking, milliseconds = _search(retrievers[query.pool], query, depth=depth)
        _check(ranking, known=known[query.pool], query=query)
        gains = dataset.qrels[query.key]
        outcomes.append(_outcome(query, ranking, gains, measures, milliseconds))
        progress("search", done, len(dataset.queries))
    return Report(
        system=system.name,
        configuration=system.configuration,
        dataset=dataset,
        depth=depth,
        overall=_group(outcomes, measures),
        categories=_categories(outcomes, measures),
        without_label_errors=_without(dataset.label_errors, outcomes, measures),
        calibration=_calibration(system, outcomes),
        outcomes=tuple(outcomes),
        latency=_latency([outcome.milliseconds for outcome in outcomes]),
        index_seconds=index_seconds,
        version=__version__,
    )


def _index(dataset: Dataset, system: RetrieverFactory, progress: Progress) -> dict[str, Retriever]:
    retrievers = {}
    for done, (pool, passages) in enumerate(dataset.pools.items(), start=1):
        retrievers[pool] = system.retriever(pool, passages)
        progress("index", done, len(dataset.pools))
    return retrievers


def _search(
    retriever: Retriever, query: EvaluationQuery, *, depth: int
) -> tuple[tuple[Scored, ...], float]:
    started = perf_counter()
    ranking = retriever(query, depth)
    milliseconds = (perf_counter() - started) * 1_000
    return tuple(ranking[:depth]), milliseconds


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
    gains: Qrels,
    measures: Sequence[Measure],
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


def _categories(
    outcomes: Sequence[QueryOutcome], measures: Sequence[Measure]
) -> dict[str, GroupScores]:
    by_category: dict[str, list[QueryOutcome]] = {}
    for outcome in outcomes:
        by_category.setdefault(outcome.query.category, []).append(outcome)
    if by_category.keys() == {""}:
        return {}
    return {name: _group(by_category[name], measures) for name in sorted(by_category)}


def _without(
    wrong: frozenset[tuple[str, str]], outcomes: Sequence[QueryOutcome], measures: Sequence[Measure]
) -> GroupScores | None:
    sound = [outcome for outcome in outcomes if outcome.query.key not in wrong]
    return _group(sound, measures) if wrong else None


def _calibration(
    system: RetrieverFactory, outcomes: Sequence[QueryOutcome]
) -> CalibrationScores | None:
    if system.configuration.get("scores") != PROBABILITIES:
        return None
    return calibration_scores(
        [
            [(score, passage_id in outcome.relevant_ranks) for passage_id, score in outcome.ranking]
            for outcome in outcomes
        ]
    )


def _group(outcomes: Sequence[QueryOutcome], measures: Sequence[Measure]) -> GroupScores:
    names = [measure.name for measure in measures]
    scores = np.array([[outcome.scores[name] for name in names] for outcome in outcomes])
    estimates = bootstrap_intervals(scores)
    return GroupScores(len(outcomes), dict(zip(names, estimates, strict=True)))


def _latency(milliseconds: Sequence[float]) -> Latency:
    p50, p95 = np.percentile(milliseconds, [50, 95])
    return Latency(p50=float(p50), p95=float(p95), mean=float(np.mean(milliseconds)))
