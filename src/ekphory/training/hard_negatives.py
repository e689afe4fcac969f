"""Finds passages that look like the answer and are none, in the collection of the answer itself.

Inside a conversation no mining is needed: all its turns compete. Collections whose passages are
about different things need it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import numpy as np

from ekphory.evaluation.baselines import Scorer
from ekphory.training.question_groups import TrainingPair

SURE_SHARE = 0.9


def with_hard_negatives(
    pairs: Sequence[TrainingPair],
    passages: Sequence[str],
    score: Scorer,
    *,
    count: int,
    random: Random,
) -> Iterator[TrainingPair]:
    """Give every pair negatives out of the passages that score best for its question.

    A passage that scores almost as high as the answer often is one as well, so those above 90 % of
    the answer's score are left out. `count` are drawn of the next three times as many.
    Source: Moreira et al., "NV-Retriever: Improving text embedding models with effective
    hard-negative mining", 2024 (positive-aware mining, TopK-PercPos).

    Args:
        pairs: Questions with answers, each answer one of the passages.
        passages: The collection.
        score: Scores all passages for a question: `bm25_scorer(passages)`, `dense_scorer(…)`.
        count: How many negatives; fewer where no more passages score above zero.
        random: Draws them.
    """
    rows = {passage: row for row, passage in enumerate(passages)}
    for pair in pairs:
        scores = np.nan_to_num(score(pair.query), nan=0.0)
        answer = rows[pair.passage]
        fitting = (scores > 0) & (scores <= SURE_SHARE * scores[answer])
        fitting[answer] = False
        order = np.argsort(-scores, kind="stable")
        best = [int(row) for row in order if fitting[row]][: 3 * count]
        drawn = random.sample(best, min(count, len(best)))
        yield replace(pair, negatives=tuple(passages[row] for row in drawn))
