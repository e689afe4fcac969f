"""A reranker without weights."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.models.reranker import RelevanceScores


class OverlapReranker:
    """Scores a passage by the share of the question's words that its text holds.

    Needs no weights and follows the `RerankingModel` protocol in full.
    """

    def __init__(self, *, batch_size: int = 16) -> None:
        self._batch_size = batch_size

    @property
    def name(self) -> str:
        """Always the same."""
        return "overlap-reranker"

    @property
    def batch_size(self) -> int:
        """As it was given."""
        return self._batch_size

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Score each passage in [0, 1]."""
        asked = _words(query.text)
        shares = [len(asked & _words(passage.text)) / max(len(asked), 1) for passage in passages]
        return np.array(shares, np.float32)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
