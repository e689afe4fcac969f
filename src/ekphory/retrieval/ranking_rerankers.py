"""The rerankers of MemMachine's configuration that need no cross-encoder.

Their scores order passages and are not probabilities of relevance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ekphory.models.embedder import EmbeddingModel
from ekphory.models.reranker import RelevanceScores, RerankingModel, RerankPassage, RerankQuery
from ekphory.retrieval.lexical import passage_terms, query_terms

_ALL_AT_ONCE = 10_000
"""Passages are compared with each other, so none may be left to another batch."""


@dataclass(frozen=True, slots=True)
class IdentityReranker:
    """Leaves passages in the order in which they come."""

    name: str
    batch_size: ClassVar[int] = _ALL_AT_ONCE

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Return scores that fall from 1 by equal steps."""
        del query
        return np.asarray(1 - np.arange(len(passages)) / max(len(passages), 1), np.float32)


@dataclass(frozen=True, slots=True)
class Bm25Reranker:
    """Orders passages by BM25, with statistics of the passages themselves; s / (1 + s).

    Attributes:
        k1: How soon a repeated term stops counting.
        b: How much a passage longer than the mean is discounted, in [0, 1].
    """

    name: str
    k1: float = 1.5
    b: float = 0.75
    batch_size: ClassVar[int] = _ALL_AT_ONCE

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Return a score in [0, 1) for each passage; 0 where it shares no term."""
        counts = [Counter(passage_terms(passage.text).tolist()) for passage in passages]
        lengths = np.array([each.total() for each in counts], float)
        relative = lengths / max(lengths.mean() if len(lengths) else 0.0, 1e-9)
        scores = np.zeros(len(passages))
        for term in query_terms(query.text).tolist():
            found = np.array([each[term] for each in counts], float)
            holders = np.count_nonzero(found)
            idf = np.log1p((len(passages) - holders + 0.5) / (holders + 0.5))
            half = self.k1 * (1 - self.b + self.b * relative)
            scores += idf * found * (self.k1 + 1) / (found + half)
        return np.asarray(scores / (1 + scores), np.float32)


@dataclass(frozen=True, slots=True)
class EmbedderReranker:
    """Orders passages by the cosine of their vector and the query's; a negative one is 0."""

    name: str
    embedder: EmbeddingModel
    batch_size: ClassVar[int] = _ALL_AT_ONCE

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Return the cosines.

        Raises:
            ServiceError: The embedder is a service, and failed.
        """
        vectors = self.embedder.encode([passage.text for passage in passages])
        cosines = vectors @ self.embedder.encode_query([query.text])[0]
        return np.asarray(np.clip(cosines, 0, 1), np.float32)


@dataclass(frozen=True, slots=True)
class RankFusionReranker:
    """Fuses the orders of several rerankers by reciprocal ranks: the mean of (k + 1) / (k + rank).

    Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual rank
    learning methods" (2009).

    Attributes:
        rerankers: Those that are fused, at least one.
        k: How much the first places count more than the next.
    """

    name: str
    rerankers: tuple[RerankingModel, ...]
    k: float = 60.0
    batch_size: ClassVar[int] = _ALL_AT_ONCE

    @property
    def is_remote(self) -> bool:
        """Whether one of them asks a service."""
        return any(getattr(each, "is_remote", False) is True for each in self.rerankers)

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Return the fused scores, 1 for what all put first.

        Raises:
            ServiceError, ModelError: One of them failed.
        """
        fused = np.zeros(len(passages))
        for each in self.rerankers:
            order = np.argsort(-each.score(query, passages), kind="stable")
            fused[order] += (self.k + 1) / (self.k + 1 + np.arange(len(passages)))
        return np.asarray(fused / len(self.rerankers), np.float32)
