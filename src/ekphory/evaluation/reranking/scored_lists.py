"""A reranker's verdict on candidates: scores, probabilities, and the order they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ekphory.evaluation.datasets import Passage
from ekphory.evaluation.reranking.candidates import CandidateList, CandidateSet, FloatArray
from ekphory.evaluation.reranking.contenders import Contender
from ekphory.models.reranker import RerankingModel
from ekphory.retrieval.calibration import reranker_probabilities
from ekphory.retrieval.rerank_blend import Blend, reranked, turns_blend
from ekphory.retrieval.reranking import relevance

_NO_SCORES = np.empty(0, np.float32)


@dataclass(frozen=True, slots=True)
class ScoredList:
    """One list of candidates with a contender's verdict.

    Attributes:
        found: The candidates.
        scores: The reranker's scores in [0, 1], shape (candidates,); NaN where it read nothing.
        probabilities: That a candidate answers, likewise; the first stage's where nothing was read.
    """

    found: CandidateList
    scores: FloatArray
    probabilities: FloatArray

    def order(self, *, first_stage_share: float = 0.0) -> NDArray[np.int64]:
        """Give the places of the candidates, best first.

        Args:
            first_stage_share: How much the first stage's order weighs, as in the stage that
                reranks; 0 orders by the reranker alone. Equal ones keep the first stage's order.
        """
        first_stage = self.found.column("ranking")
        if np.isnan(self.scores).all():
            return np.arange(len(first_stage))
        blend = turns_blend(first_stage_share) if first_stage_share else Blend(method="scores")
        return np.argsort(-reranked(first_stage, self.scores, blend), kind="stable")


@dataclass(slots=True)
class Judge:
    """Puts candidates before a contender. A pool's reranker is made once.

    Attributes:
        contender: Who judges.
        candidates: Where the passages are.
        pools: All passages by pool, for rerankers that need to know the collection.
    """

    contender: Contender
    candidates: CandidateSet
    pools: Mapping[str, Sequence[Passage]]
    _rerankers: dict[str, RerankingModel] = field(default_factory=dict)

    def score(self, found: CandidateList, *, most: int | None = None) -> ScoredList:
        """Score the first candidates of a list; None scores all.

        Raises:
            ServiceError, ModelError: The reranker failed.
        """
        scores = np.full(len(found.ids), np.nan)
        probabilities = found.column("probability")
        reranker = self.reranker(found.searched)
        if reranker is None:
            return ScoredList(found, scores, probabilities)
        passages = self.candidates.read(found, most=most)
        read = relevance(reranker, found.asked, passages, seconds=None)
        scores[: len(read)] = read
        probabilities[: len(read)] = as_probabilities(reranker, read)
        return ScoredList(found, scores, probabilities)

    @property
    def is_calibrated(self) -> bool:
        """Whether the probabilities were fitted; those of the first stage were."""
        reranker = self.reranker(next(iter(self.pools)))
        return reranker is None or reranker_probabilities(reranker, _NO_SCORES) is not None

    def reranker(self, pool: str) -> RerankingModel | None:
        """Give the reranker of a pool; None for the first stage alone."""
        if self.contender.reranker is None:
            return None
        if pool not in self._rerankers:
            texts = [passage.indexed_text for passage in self.pools[pool]]
            self._rerankers[pool] = self.contender.reranker(texts)
        return self._rerankers[pool]


def as_probabilities(reranker: RerankingModel, scores: FloatArray) -> FloatArray:
    """Give the probabilities that were fitted for a reranker, else its scores as they are.

    A search shows the latter to nobody: without a calibration it keeps the first stage's.
    """
    fitted = reranker_probabilities(reranker, scores.astype(np.float32))
    return scores if fitted is None else fitted.astype(np.float64)
