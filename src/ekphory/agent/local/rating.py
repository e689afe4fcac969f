"""How much a memory counts as evidence for a hop, given what the chain has found so far."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ekphory.agent.question.words import meaning_words, words_in
from ekphory.errors import ModelError, ServiceError
from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.models.reranker import RerankingModel
from ekphory.types import Hit

_log = logging.getLogger("ekphory.agent")
MOST_RERANKED = 10
_HEAD_WORDS = 6
_RANK_DISCOUNT = 0.1


@dataclass(frozen=True, slots=True)
class Rated:
    """A memory and how much it counts, in [0, 1]."""

    hit: Hit
    weight: float


def rated(
    hits: Sequence[Hit], query: str, *, chain: Sequence[str], reranker: RerankingModel | None
) -> list[Rated]:
    """Weigh the hits of a hop by their place, and by a reranker that knows the chain.

    Args:
        hits: Best first.
        query: What the hop looks for.
        chain: The hops before it, each `query: answer`.
        reranker: Reads the first ten; None leaves their order.
    """
    weights = [1 / (1 + _RANK_DISCOUNT * place) for place in range(len(hits))]
    head = list(hits[:MOST_RERANKED])
    if reranker is not None and head:
        passages = [
            RerankPassage(hit.memory.indexed_text, at=hit.memory.at, type=hit.memory.type)
            for hit in head
        ]
        try:
            read = reranker.score(RerankQuery(query, context=tuple(chain)), passages)
        except (ServiceError, ModelError) as error:
            _log.warning("the agent goes on without its reranker: %s", error)
        else:
            highest = max(float(read.max()), 1e-6)
            weights[: len(head)] = [
                weight * (0.5 + 0.5 * float(score) / highest)
                for weight, score in zip(weights, read, strict=False)
            ]
    return [Rated(hit, weight) for hit, weight in zip(hits, weights, strict=True)]


def aboutness(text: str, entity: str) -> float:
    """Measure in [0, 1] how far a text is about an entity: begins with it, or names it at all."""
    wanted = meaning_words(entity)
    words = words_in(text)
    there = len(wanted.intersection(words)) / len(wanted)
    ahead = len(wanted.intersection(words[: _HEAD_WORDS + len(wanted)])) / len(wanted)
    begins = len(wanted.intersection(words[: len(wanted) + 1])) / len(wanted)
    named = words_in(entity)
    is_title = words[: len(named)] == named
    return 0.02 + 0.38 * there**3 + 0.3 * ahead**3 + 0.2 * begins**3 + 0.1 * is_title
