"""What a reranker is: the protocol that every reranking model follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ekphory.models.rerank_input import RerankPassage, RerankQuery

RelevanceScores = NDArray[np.float32]


class RerankingModel(Protocol):
    """Reads a query together with each passage. Safe to call from several threads."""

    @property
    def name(self) -> str:
        """What the trace and error messages call it."""
        ...

    @property
    def batch_size(self) -> int:
        """How many passages are best given at a time."""
        ...

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Score each passage, in the order given; returns shape (len(passages),), in [0, 1].

        Raises:
            ServiceError: A remote reranker failed after all repeats, or answered nonsense.
            ModelError: A local model gave impossible output.
        """
        ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a model says of some passages, in their order.

    Attributes:
        scores: In [0, 1], shape (passages,).
        raw: What the model itself gave, likewise: logits, most often.
    """

    scores: RelevanceScores
    raw: RelevanceScores


@runtime_checkable
class LocalReranker(RerankingModel, Protocol):
    """A reranker that runs in this process and shows what its scores are made from."""

    @property
    def is_calibrated(self) -> bool:
        """Whether its scores were fitted to be probabilities, comparable between queries."""
        ...

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Give what `score` gives, and beside it what it was made from."""
        ...


def judged(
    model: RerankingModel, query: RerankQuery, passages: Sequence[RerankPassage]
) -> Judgement:
    """Give what a local model's scores are made from beside them; of any other the same twice."""
    if isinstance(model, LocalReranker):
        return model.judge(query, passages)
    scores = model.score(query, passages)
    return Judgement(scores, scores)


def is_remote(model: RerankingModel) -> bool:
    """Whether the model says of itself that it asks a service over the network."""
    return getattr(model, "is_remote", False) is True
