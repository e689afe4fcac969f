"""The final order: what follows the chain is reranked for the question, given the chain."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from ekphory.agent.merging import FIRST
from ekphory.errors import ModelError, ServiceError
from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.models.reranker import RerankingModel
from ekphory.retrieval.rerank_blend import blended_ranks
from ekphory.types import Hit

_log = logging.getLogger("ekphory.agent")
MOST_REREAD = 10


def reranked(
    hits: Sequence[Hit], query: RerankQuery, reranker: RerankingModel | None
) -> tuple[list[Hit], bool]:
    """Order what stands after the chain anew; the chain keeps its place and its order.

    Args:
        hits: As `merged` gives them.
        query: The question, with the chain as its context.
        reranker: None leaves the order.

    Returns:
        The hits, and whether the reranker ordered them.
    """
    length = sum(hit.scores.get("hop", 0.0) >= FIRST for hit in hits)
    chain, rest, tail = hits[:length], hits[length:][:MOST_REREAD], hits[length + MOST_REREAD :]
    if reranker is None or len(rest) < 2:
        return list(hits), False
    passages = [
        RerankPassage(hit.memory.indexed_text, at=hit.memory.at, type=hit.memory.type)
        for hit in rest
    ]
    try:
        scores = reranker.score(query, passages)
    except (ServiceError, ModelError) as error:
        _log.warning("the agent's evidence keeps its order: %s", error)
        return list(hits), False
    order = np.argsort(-blended_ranks(scores.astype(np.float64)), kind="stable")
    return [*chain, *(rest[place] for place in order), *tail], True
