"""Asking a reranker about many passages, in batches of like lengths and within a time budget."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.models.rerank_scores import checked_scores
from ekphory.models.reranker import RerankingModel
from ekphory.retrieval.rerank_blend import FloatArray


def relevance(
    reranker: RerankingModel,
    query: RerankQuery,
    passages: Sequence[RerankPassage],
    *,
    seconds: float | None,
) -> FloatArray:
    """Score passages in [0, 1], NaN for those that the time did not suffice for.

    The first batch is always scored, and tells how many more can be. A padded batch costs what its
    longest passage costs, so passages of like lengths go together.

    Args:
        reranker: The model.
        query: What is asked.
        passages: The likeliest first: they come before the others.
        seconds: Time to spend; None for as long as it takes.

    Raises:
        ModelError: The reranker gave something else than one number in [0, 1] for each passage.
        ServiceError: It is a service, and failed.
    """
    scores = np.full(len(passages), np.nan)
    started = time.perf_counter()
    size = max(1, reranker.batch_size)
    first = size if seconds is not None else len(passages)
    for batch in _batches(passages, range(min(first, len(passages))), size):
        scores[batch] = _scored(reranker, query, [passages[place] for place in batch])
    if seconds is None:
        return scores
    spent = time.perf_counter() - started
    affordable = size * int((seconds - spent) / max(spent, 1e-9)) if spent < seconds else 0
    rest = range(first, min(len(passages), first + affordable))
    for batch in _batches(passages, rest, size):
        if time.perf_counter() - started > seconds:
            break
        scores[batch] = _scored(reranker, query, [passages[place] for place in batch])
    return scores


def _scored(
    reranker: RerankingModel, query: RerankQuery, passages: Sequence[RerankPassage]
) -> FloatArray:
    return checked_scores(reranker.score(query, passages), count=len(passages))


def _batches(
    passages: Sequence[RerankPassage], places: Sequence[int], size: int
) -> list[list[int]]:
    by_length = sorted(places, key=lambda place: len(passages[place].text))
    return [by_length[start : start + size] for start in range(0, len(by_length), size)]
