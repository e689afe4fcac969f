"""How long a reranker takes to read as many candidates as the presets give it."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

import numpy as np

from ekphory.evaluation.report import Latency
from ekphory.evaluation.reranking.candidates import CandidateList
from ekphory.evaluation.reranking.scored_lists import Judge
from ekphory.retrieval.reranking import relevance

READ_COUNTS = (30, 50)
QUESTIONS = 40


def reading_latency(judge: Judge, *, questions: int = QUESTIONS) -> Mapping[int, Latency]:
    """Time the reading of the first 30 and the first 50 candidates, one question at a time.

    The first question is put once before, unmeasured. A question with fewer candidates is left
    out, and so is a count that none has.

    Args:
        judge: The contender and the candidates.
        questions: How many questions, spread over the set.

    Returns:
        By the number of candidates; empty for the first stage alone.
    """
    measured: dict[int, Latency] = {}
    for count in READ_COUNTS if judge.contender.reranker is not None else ():
        lists = [found for found in judge.candidates.own if len(found.ids) >= count]
        chosen = lists[:: max(1, len(lists) // questions)][:questions]
        _, *times = [_milliseconds(judge, found, count) for found in (*chosen[:1], *chosen)] or [0]
        if times:
            p50, p95 = np.percentile(times, [50, 95])
            measured[count] = Latency(float(p50), float(p95), float(np.mean(times)))
    return measured


def _milliseconds(judge: Judge, found: CandidateList, count: int) -> float:
    reranker = judge.reranker(found.searched)
    if reranker is None:
        return 0.0
    passages = judge.candidates.read(found, most=count)
    started = perf_counter()
    relevance(reranker, found.asked, passages, seconds=None)
    return (perf_counter() - started) * 1_000
