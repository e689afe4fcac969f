"""A reranker that reads each pair of query and passage once, however often it is asked for it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ekphory.models.agent_reranker import Reranker
from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.models.reranker import Judgement, RelevanceScores, RerankingModel

_Pair: TypeAlias = tuple[RerankQuery, RerankPassage]
"""Everything that a model reads for one score."""


class RememberingReranker:
    """Gives what another reranker gives, and asks it for nothing twice.

    A score depends on the pair alone: neither on who asks nor on the passages beside it. Safe to
    call from several threads; what a failed call asked for is asked for again.
    """

    def __init__(self, model: RerankingModel) -> None:
        """Wrap a loaded model, of which nothing is known yet."""
        self._model = Reranker(model)
        self._known: dict[_Pair, tuple[float, float]] = {}
        self._remembered = 0
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    @property
    def batch_size(self) -> int:
        """How many passages are best given at a time."""
        return self._model.batch_size

    @property
    def is_calibrated(self) -> bool:
        """Whether the model's scores were fitted to be probabilities."""
        return self._model.is_calibrated

    @property
    def is_remote(self) -> bool:
        """Whether the model is a service."""
        return self._model.is_remote

    @property
    def remembered(self) -> int:
        """How many scores were given so far without asking the model."""
        return self._remembered

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Give the model's scores, shape (len(passages),)."""
        return self.judge(query, passages).scores

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Give the model's scores, and beside them what they were made from."""
        # Held while the model reads, or two threads would have it read the same pair.
        with self._lock:
            unknown = [passage for passage in passages if (query, passage) not in self._known]
            if unknown:
                self._read(query, unknown)
            self._remembered += len(passages) - len(unknown)
            known = [self._known[query, passage] for passage in passages]
        values = np.array(known, np.float32).reshape(len(passages), 2)
        return Judgement(values[:, 0], values[:, 1])

    def _read(self, query: RerankQuery, passages: Sequence[RerankPassage]) -> None:
        judged = self._model.judge(query, passages)
        given = zip(judged.scores.tolist(), judged.raw.tolist(), strict=True)
        self._known.update(
            ((query, passage), pair) for passage, pair in zip(passages, given, strict=True)
        )
