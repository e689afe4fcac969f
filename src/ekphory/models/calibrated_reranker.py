"""A reranker of one's own whose scores were fitted to be probabilities."""

from __future__ import annotations

from collections.abc import Sequence

from ekphory.errors import InvalidInput
from ekphory.models.bundled_reranker import bundled_name, model_id
from ekphory.models.calibration_file import FittedCalibration
from ekphory.models.platt_scaling import log_odds
from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.models.rerank_scores import checked_scores
from ekphory.models.reranker import (
    Judgement,
    RelevanceScores,
    RerankingModel,
    is_remote,
    judged,
)
from ekphory.models.reranker_record import CalibrationCard


class CalibratedReranker:
    """Gives σ(slope · logit(s) + intercept) where the reranker gives s. As safe for threads."""

    def __init__(self, model: RerankingModel, fitted: FittedCalibration) -> None:
        """Put a calibration behind a reranker.

        Raises:
            InvalidInput: It was fitted for another one.
        """
        if fitted.reranker != model.name:
            raise InvalidInput(
                "calibration",
                fitted.reranker,
                f"was fitted for this reranker, and not for {model.name!r}",
                "Fit one for it with `ekphory train reranker-calibration`",
            )
        self._model = model
        self._card = fitted.card

    def __repr__(self) -> str:
        return f"CalibratedReranker({self._model!r})"

    @property
    def name(self) -> str:
        """The reranker's own."""
        return self._model.name

    @property
    def batch_size(self) -> int:
        """The reranker's own."""
        return self._model.batch_size

    @property
    def is_remote(self) -> bool:
        """Whether it asks a service."""
        return is_remote(self._model)

    @property
    def bundled_name(self) -> str | None:
        """The reranker's own, where it came with ekphory."""
        return bundled_name(self._model)

    @property
    def model_id(self) -> str | None:
        """The reranker's own, where it states one."""
        return model_id(self._model)

    @property
    def is_calibrated(self) -> bool:
        """Always."""
        return True

    @property
    def calibration(self) -> CalibrationCard:
        """What its scores are worth."""
        return self._card

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Give the probability that each passage answers; shape (len(passages),).

        Raises:
            ServiceError, ModelError: The reranker failed.
        """
        return self.judge(query, passages).scores

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Give probabilities, and beside them what the reranker itself shows or gives."""
        own = judged(self._model, query, passages)
        given = checked_scores(own.scores, count=len(passages))
        return Judgement(self._card.scaling.probabilities(log_odds(given)), own.raw)
