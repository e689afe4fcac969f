"""Fits the scores of any reranker to be probabilities, on conversations that none is trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ekphory.errors import InvalidInput
from ekphory.models.model_record import CalibrationCard
from ekphory.models.reranker import log_odds
from ekphory_lab.evaluation.datasets import Dataset
from ekphory_lab.evaluation.metrics import FloatArray
from ekphory_lab.evaluation.reranking.benchmark import Reliability, reliability
from ekphory_lab.evaluation.reranking.contenders import Judge
from ekphory_lab.evaluation.runner import Progress, silent
from ekphory_lab.training.reranker.export import fit_platt, precision_thresholds


@dataclass(frozen=True, slots=True)
class OwnCalibration:
    """A calibration and how well it holds.

    Attributes:
        card: The curve over the log-odds of the scores, its thresholds and its error.
        reliability: Of its probabilities on the candidates that it was fitted on, for the picture.
    """

    card: CalibrationCard
    reliability: Reliability | None


_NO_CURVE = (
    "its scores do not rise with what answers on these conversations",
    "Check that it reads the language of the data, and the right protocol and scale of scores",
)


def fit_own_calibration(
    dataset: Dataset, judge: Judge, *, read: int, progress: Progress = silent
) -> OwnCalibration:
    """Score the first candidates of every question, and fit a curve to what answers.

    Args:
        dataset: Judgements.
        judge: The reranker and the candidates.
        read: How many candidates of a question it reads, as many as in a search.
        progress: Is told after each question.

    Raises:
        InvalidInput: Fewer than four questions, or scores that do not rise with what answers.
        ServiceError, ModelError: The reranker failed.
    """
    odds: list[FloatArray] = []
    relevant: list[FloatArray] = []
    for done, found in enumerate(judge.candidates.own, start=1):
        scores = judge.score(found, most=read).scores
        was_read = ~np.isnan(scores)
        gains = dataset.qrels[found.key]
        answers = np.array([float(gains.get(passage, 0) > 0) for passage in found.ids])
        odds.append(log_odds(scores[was_read]))
        relevant.append(answers[was_read])
        progress("score", done, len(judge.candidates.own))
    all_equal = bool(odds) and float(np.ptp(np.concatenate(odds))) == 0
    fit = None if all_equal else fit_platt(odds, relevant)
    if fit is None or fit.scaling.slope <= 0:
        raise InvalidInput("reranker", judge.contender.name, *_NO_CURVE)
    said = [fit.scaling.probabilities(each).astype(np.float64) for each in odds]
    card = CalibrationCard(
        slope=fit.scaling.slope,
        intercept=fit.scaling.intercept,
        data=f"{fit.observations} candidates of {len(odds)} questions to {dataset.name}",
        measured={"ece/held back": round(fit.expected_calibration_error, 4)},
        thresholds=precision_thresholds(np.concatenate(said), np.concatenate(relevant)),
    )
    return OwnCalibration(card, reliability(list(zip(said, relevant, strict=True))))
