"""Putting a reranker's scores together with the first stage: pure functions over arrays.

Source of the formulas: `blendByRank`, `blendScores` and `normalizeQueryForReranker` in
kleinpanic/memory-spark, `src/rerank/reranker.ts`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ekphory.models.platt_scaling import log_odds

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
    """Give the blend of scores that was found best on turns of conversations (docs/LOG.md, 31)."""
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
    scores[read] = blended(first_stage[read], reranker[read], blend, gate_weight) * factors[read]
    rest = first_stage[~read] * factors[~read]
    lowest, highest = scores[read].min(initial=0.0), rest.max(initial=0.0)
    scores[~read] = rest - highest + lowest - 1e-5
    return scores


def blended(
    first_stage: FloatArray, reranker: FloatArray, blend: Blend, gate_weight: float
) -> FloatArray:
    """Put the two together, every candidate having a score from both."""
    if blend.method == "scores":
        return blended_scores(
            first_stage,
            reranker,
            first_stage_share=blend.first_stage_share,
            most_spread=blend.most_spread,
        )
    return blended_ranks(
        reranker,
        constant=blend.constant,
        first_stage_weight=blend.first_stage_weight * gate_weight,
        reranker_weight=blend.reranker_weight,
    )


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
