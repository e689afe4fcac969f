"""What a reranker is: the protocol that every reranking model follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

RelevanceScores = NDArray[np.float32]


class Reranker(Protocol):
    """Reads a query together with each passage. Safe to call from several threads."""

    @property
    def name(self) -> str:
        """What the trace and error messages call it."""
        ...

    @property
    def batch_size(self) -> int:
        """How many passages are best given at a time."""
        ...

    def score(self, query: str, passages: Sequence[str]) -> RelevanceScores:
        """Score each passage, in the order given; returns shape (len(passages),), in [0, 1].

        Raises:
            ServiceError: A remote reranker failed after all repeats, or answered nonsense.
            ModelError: A local model gave impossible output.
        """
        ...
