"""The service's models by themselves: passages scored, texts embedded, nothing stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ekphory.errors import EkphoryError
from ekphory.models.embedder import EmbeddingModel, FloatMatrix
from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.models.reranker import RerankingModel
from ekphory.prompting.token_budget import estimate_tokens
from ekphory.retrieval.reranking import relevance
from ekphory.service.models import ServiceModels

Purpose = Literal["query", "passage"]
"""What a text is embedded as: models may prompt the two differently."""


class NotConfigured(EkphoryError):
    """What is asked for needs a model that this service was started without."""


class ModelVerbs:
    """What the models can do on request."""

    def __init__(self, models: ServiceModels) -> None:
        self._models = models

    @property
    def reranker_name(self) -> str:
        """What the reranker is called.

        Raises:
            NotConfigured: There is none.
        """
        return self._reranker.name

    def rerank(self, query: RerankQuery, passages: Sequence[RerankPassage]) -> list[float]:
        """Score passages in [0, 1], in the order given.

        Raises:
            NotConfigured: There is no reranker.
            ServiceError: A remote reranker failed.
        """
        scores = relevance(self._reranker, query, passages, seconds=None)
        return [float(score) for score in scores]

    def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatMatrix:
        """Embed texts; returns shape (len(texts), dimension), rows of length 1.

        A passage that is longer than the model reads is embedded in parts, and their mean is taken:
        nothing of it is left out.
        """
        embedder = self._models.embedder
        if purpose == "query":
            return embedder.encode_query(texts)
        return _mean_of_windows(embedder, texts)

    def tokens(self, texts: Sequence[str]) -> int:
        """Estimate how many tokens texts have, from above."""
        return sum(map(estimate_tokens, texts))

    @property
    def _reranker(self) -> RerankingModel:
        if self._models.reranker is None:
            raise NotConfigured(
                "No reranker is configured. Start the server with EKPHORY_RERANKER set to a "
                "model's directory or a service's URL."
            )
        return self._models.reranker


def shortened(vectors: FloatMatrix, dimensions: int) -> FloatMatrix:
    """Keep the first components, and make every row of length 1 again."""
    kept = vectors[:, :dimensions]
    lengths = np.linalg.norm(kept, axis=1, keepdims=True)
    return np.asarray(kept / np.where(lengths > 0, lengths, 1), np.float32)


def _mean_of_windows(embedder: EmbeddingModel, texts: Sequence[str]) -> FloatMatrix:
    windows = [embedder.windows(text) for text in texts]
    vectors = embedder.encode([window for parts in windows for window in parts])
    if len(vectors) == len(texts):
        return vectors
    ends = np.cumsum([len(parts) for parts in windows])[:-1]
    means = np.array([part.mean(axis=0) for part in np.split(vectors, ends)])
    return shortened(means, means.shape[1])
