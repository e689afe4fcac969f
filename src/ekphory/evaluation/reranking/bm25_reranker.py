"""BM25 as a reranker: the baseline that every reranking model has to beat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.models.reranker import RelevanceScores
from ekphory.retrieval.terms import passage_terms, query_terms

SATURATION = 1.5
LENGTH_NORMALISATION = 0.75


class Bm25Reranker:
    """Scores by BM25, over the most that the query's terms could give in the collection.

    The score is Σ idf·tf·(k1+1) / (tf + k1·(1 - b + b·length/mean)) over Σ idf·(k1+1), with
    idf = ln(1 + (N - n + ½)/(n + ½)) as in Lucene. How rare a term is and how long a passage is on
    average come from the collection, so a score does not depend on what is scored beside it.
    """

    def __init__(self, collection: Sequence[str]) -> None:
        """Count the terms of a collection.

        Args:
            collection: All texts among which the passages were found.
        """
        documents = [passage_terms(text) for text in collection]
        self._documents = len(documents)
        self._mean_length = max(1.0, sum(map(len, documents)) / max(1, len(documents)))
        terms = [np.unique(document) for document in documents]
        distinct, counts = np.unique(
            np.concatenate([*terms, np.empty(0, np.uint32)]), return_counts=True
        )
        self._holding = dict(zip(distinct.tolist(), counts.tolist(), strict=True))

    @property
    def name(self) -> str:
        """Always the same."""
        return "bm25"

    @property
    def batch_size(self) -> int:
        """Batches make no difference to it."""
        return 64

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Score each passage in [0, 1], by its own text and by the question alone."""
        asked = query_terms(query.text)
        held = np.array([self._holding.get(int(term), 0) for term in asked], np.float64)
        rarity = np.log1p((self._documents - held + 0.5) / (held + 0.5))
        most = max(1e-9, float(rarity.sum()) * (SATURATION + 1))
        scores = [
            float((rarity * self._frequencies(asked, passage.text)).sum()) / most
            for passage in passages
        ]
        return np.array(scores, np.float32)

    def _frequencies(self, asked: np.ndarray, text: str) -> np.ndarray:
        terms = passage_terms(text)
        counts = (terms[:, np.newaxis] == asked).sum(axis=0)
        relative = len(terms) / self._mean_length
        damping = SATURATION * (1 - LENGTH_NORMALISATION + LENGTH_NORMALISATION * relative)
        return np.asarray(counts * (SATURATION + 1) / (counts + damping))
