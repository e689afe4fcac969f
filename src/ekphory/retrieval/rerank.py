"""Asking a reranker about many passages, and putting its scores together with the first stage."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ekphory.models.reranker import (
    RerankingModel,
    RerankPassage,
    RerankQuery,
    check_scores,
    find_stated_type,
    log_odds,
)
from ekphory.retrieval.pipeline import Candidates, SearchRequest, SearchState, read_candidates
from ekphory.store.protocol import IntArray
from ekphory.types import EPOCH, MemoryRecord

# Putting a reranker's scores together with the first stage: pure functions over arrays.
#
# Source of the formulas: `blendByRank`, `blendScores` and `normalizeQueryForReranker` in
# kleinpanic/memory-spark, `src/rerank/reranker.ts`.

FloatArray = NDArray[np.float64]
BlendMethod = Literal["ranks", "scores"]

_QUESTION_WORDS = frozenset(
    "who what which when where why how is are was were do does did can could will would should "
    "shall has have had may might".split()
)
_QUESTION_END = re.compile(r"\?\s*$")
_SENTENCE_END = re.compile(r"\.\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """How a reranker's scores and the first stage's order become one.

    Attributes:
        method: `ranks` sums reciprocal ranks; `scores` adds the scores, both scaled to [0, 1].
        first_stage_share: Share of the first stage among `scores`; 0 leaves the reranker alone.
        constant: Added to each rank among `ranks`.
        first_stage_weight, reranker_weight: Of the two among `ranks`.
        least_spread: Reranker's scores that lie closer together, in logits, change no order.
        most_spread: Among `scores`: what lies further below the reranker's best, in logits, counts
            as so far below. How improbable the improbable are shall not decide about the best.
    """

    method: BlendMethod = "ranks"
    first_stage_share: float = 0.0
    constant: float = 60.0
    first_stage_weight: float = 1.0
    reranker_weight: float = 1.0
    least_spread: float = 0.5
    most_spread: float = math.inf


def turns_blend(first_stage_share: float) -> Blend:
    """Return the blend of scores found best on turns of conversations (docs/LOG.md, 31)."""
    return Blend(method="scores", first_stage_share=first_stage_share, most_spread=5.0)


def reranked(
    first_stage: FloatArray,
    reranker: FloatArray,
    blend: Blend,
    *,
    gate_weight: float = 1.0,
    boost: FloatArray | None = None,
) -> FloatArray:
    """Score all candidates anew; those that were not read follow the others in their order.

    Args:
        first_stage: Values they were ordered by, best first, shape (candidates,).
        reranker: Scores in [0, 1], NaN for a candidate that was not read.
        blend: How the two become one.
        gate_weight: Multiplies the first stage's weight among `ranks`.
        boost: Multiplies the new score of each candidate; None for no change.
    """
    read = ~np.isnan(reranker)
    factors = np.ones(len(first_stage)) if boost is None else boost
    scores = np.empty(len(first_stage))
    if blend.method == "scores":
        blended = blended_scores(
            first_stage[read],
            reranker[read],
            first_stage_share=blend.first_stage_share,
            most_spread=blend.most_spread,
        )
    else:
        blended = blended_ranks(
            reranker[read],
            constant=blend.constant,
            first_stage_weight=blend.first_stage_weight * gate_weight,
            reranker_weight=blend.reranker_weight,
        )
    scores[read] = blended * factors[read]
    rest = first_stage[~read] * factors[~read]
    lowest, highest = scores[read].min(initial=0.0), rest.max(initial=0.0)
    scores[~read] = rest - highest + lowest - 1e-5
    return scores


def blended_ranks(
    reranker: FloatArray,
    *,
    constant: float = 60.0,
    first_stage_weight: float = 1.0,
    reranker_weight: float = 1.0,
) -> FloatArray:
    """Add weighted reciprocal ranks: w₁/(constant + r₁) + w₂/(constant + r₂), ranks from 1.

    Candidates come in the first stage's order, so the place is its rank. Equal reranker scores
    keep that order.
    """
    places = np.arange(1, len(reranker) + 1, dtype=np.float64)
    ranks = np.empty(len(reranker))
    ranks[np.argsort(-reranker, kind="stable")] = places
    return first_stage_weight / (constant + places) + reranker_weight / (constant + ranks)


def blended_scores(
    first_stage: FloatArray,
    reranker: FloatArray,
    *,
    first_stage_share: float,
    most_spread: float = math.inf,
) -> FloatArray:
    """Add share·minmax(first stage) + (1 - share)·minmax(max(l, max(l) - most_spread)).

    l are the logits of the reranker's scores.
    """
    share, read = first_stage_share, log_odds(reranker)
    bounded = np.maximum(read, read.max(initial=-math.inf) - most_spread)
    return share * min_max(first_stage) + (1 - share) * min_max(bounded)


def lift_odds(scores: FloatArray, factors: FloatArray) -> FloatArray:
    """Return probabilities whose odds are multiplied; NaN stays."""
    lifted = log_odds(scores) + np.log(factors)
    return np.where(factors == 1, scores, 1 / (1 + np.exp(-lifted)))


def min_max(values: FloatArray) -> FloatArray:
    """Scale to [0, 1]; equal values all become .5."""
    spread = np.ptp(values) if len(values) else 0.0
    if spread == 0:
        return np.full(len(values), 0.5)
    return np.asarray((values - values.min()) / spread)


def is_undecided(reranker: FloatArray, *, least_spread: float) -> bool:
    """Whether the scores, NaN aside, lie so close together in logits that their order is chance."""
    read = reranker[~np.isnan(reranker)]
    return len(read) > 1 and float(np.ptp(log_odds(read))) < least_spread


def as_question(query: str) -> str:
    """Turn a statement into a question, which rerankers trained on questions tell apart better."""
    stated = query.strip()
    first_word = stated.split(maxsplit=1)[0].lower() if stated else ""
    if not stated or _QUESTION_END.search(stated) or first_word in _QUESTION_WORDS:
        return query
    claim = _SENTENCE_END.sub("", stated)
    return f"Is it true that {claim[:1].lower()}{claim[1:]}?"


# What stage 12 gives a reranker: the question with its context, the memories with their turns.


def asked(request: SearchRequest, text: str) -> RerankQuery:
    """Return the question in this wording, with the dialogue before it and its moment."""
    now = EPOCH + timedelta(microseconds=request.now)
    return RerankQuery(text, context=request.context, now=now)


def read_passages(
    state: SearchState, *, most: int | None = None
) -> tuple[Candidates, list[RerankPassage]]:
    """Read the first candidates together with the turns before and after them, in one take.

    Returns:
        As `read_candidates`, with passages in place of records.
    """
    head = state.candidates.rows[:most]
    wanted = np.unique(np.concatenate([head, *_neighbours(state, head)]))
    keys = state.snapshot.columns.key[wanted[wanted >= 0]].tolist()
    found = state.resources.records(keys)
    candidates, records = read_candidates(state, most=most)
    before, after = _neighbours(state, candidates.rows[: len(records)])
    passages = [
        RerankPassage(
            record.indexed_text,
            before=_text(state, found, int(before[place])),
            after=_text(state, found, int(after[place])),
            at=record.at,
            type=find_stated_type(record),
        )
        for place, record in enumerate(records)
    ]
    return candidates, passages


def _neighbours(state: SearchState, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Rows of the turns before and after that have not expired; -1 where there is none."""
    neighbours, alive = state.snapshot.neighbours, state.snapshot.alive(state.request.now)
    before, after = neighbours.previous[rows], neighbours.following[rows]
    return np.where(alive[before], before, -1), np.where(alive[after], after, -1)


def _text(state: SearchState, found: Mapping[int, MemoryRecord], row: int) -> str | None:
    record = found.get(int(state.snapshot.columns.key[row])) if row >= 0 else None
    return None if record is None else record.indexed_text


# Asking a reranker about many passages, in batches of like lengths and within a time budget.


def score_relevance(
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
        scores[batch] = _score(reranker, query, [passages[place] for place in batch])
    if seconds is None:
        return scores
    spent = time.perf_counter() - started
    affordable = size * int((seconds - spent) / max(spent, 1e-9)) if spent < seconds else 0
    rest = range(first, min(len(passages), first + affordable))
    for batch in _batches(passages, rest, size):
        if time.perf_counter() - started > seconds:
            break
        scores[batch] = _score(reranker, query, [passages[place] for place in batch])
    return scores


def _score(
    reranker: RerankingModel, query: RerankQuery, passages: Sequence[RerankPassage]
) -> FloatArray:
    return check_scores(reranker.score(query, passages), count=len(passages))


def _batches(
    passages: Sequence[RerankPassage], places: Sequence[int], size: int
) -> list[list[int]]:
    by_length = sorted(places, key=lambda place: len(passages[place].text))
    return [by_length[start : start + size] for start in range(0, len(by_length), size)]
