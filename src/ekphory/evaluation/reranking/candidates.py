"""Fixed candidates: what the first stage found for every question, the same for every reranker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ekphory.models.rerank_input import RerankPassage, RerankQuery

FloatArray = NDArray[np.float64]

FIRST_STAGE_SCORES = ("ranking", "probability", "fused", "cosine", "lexical")
"""What is kept of the first stage: its order, its probability, and what they come from."""


@dataclass(frozen=True, slots=True)
class CandidateList:
    """What one search found.

    Attributes:
        key: Pool and id of the question.
        searched: The pool that was searched: the question's own, or another conversation.
        asked: The question, as a reranker gets it.
        ids: The passages found, best first.
        scores: Each of `FIRST_STAGE_SCORES`, parallel to `ids`.
    """

    key: tuple[str, str]
    searched: str
    asked: RerankQuery
    ids: tuple[str, ...]
    scores: Mapping[str, tuple[float, ...]]

    def column(self, name: str) -> FloatArray:
        """Give one score of the first stage, shape (candidates,)."""
        return np.array(self.scores[name], np.float64)


@dataclass(frozen=True, slots=True)
class CandidateIdentity:
    """What decides which candidates are found.

    Attributes:
        dataset: Name of the set.
        data: SHA-256 of its files.
        queries: How many questions were put.
        embedder: Identity of the first stage's embedder.
        first_stage: SHA-256 of the first stage's settings.
        top: How many candidates were kept for each question.
    """

    dataset: str
    data: str
    queries: int
    embedder: str
    first_stage: str
    top: int


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """The candidates of all questions of a set.

    Attributes:
        identity: What they were made from.
        passages: What a reranker reads, by pool and id.
        own: Every question in its own pool, in the set's order.
        elsewhere: Every question in another conversation, which does not answer it; empty for a
            set of one pool.
    """

    identity: CandidateIdentity
    passages: Mapping[str, Mapping[str, RerankPassage]]
    own: tuple[CandidateList, ...]
    elsewhere: tuple[CandidateList, ...]

    def read(self, found: CandidateList, *, most: int | None = None) -> list[RerankPassage]:
        """Give the first passages of a list, as a reranker gets them."""
        pool = self.passages[found.searched]
        return [pool[passage_id] for passage_id in found.ids[:most]]
