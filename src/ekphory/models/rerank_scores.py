"""Reads the scores that a reranker or its service gives, and invents none."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import ModelError
from ekphory.models.reranker import RelevanceScores

ScoreScale = Literal["probability", "logit"]
"""What a service's scores are: in [0, 1] as they come, or to be brought there by a sigmoid."""


def checked_scores(given: object, *, count: int) -> NDArray[np.float64]:
    """Give a reranker's scores, if there is one in [0, 1] for each passage.

    Raises:
        ModelError: There is not.
    """
    try:
        scores = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"gave no list of numbers ({error}). `score` gives one number for each passage."
        ) from error
    if scores.shape != (count,):
        raise ModelError(
            f"gave scores of shape {scores.shape} for {count} passages. "
            "`score` gives one number for each."
        )
    outside = scores[~((scores >= 0) & (scores <= 1))]
    if outside.size:
        raise ModelError(
            f"gave the score {outside[0]:g}. `score` gives numbers from 0 to 1: "
            "bring logits there by 1 / (1 + exp(-logit))."
        )
    return scores


def scores_in_order(
    rows: object, *, count: int, score_field: str, scale: ScoreScale
) -> RelevanceScores:
    """Give each passage's score, in the order in which the passages were sent.

    Args:
        rows: A list of `{"index": position, score_field: score}`, in any order.
        count: How many passages were sent.
        score_field: Field that holds a row's score.
        scale: What the scores are.

    Raises:
        ValueError: A passage has no score or two, or a score is no number that the scale allows.
    """
    if not isinstance(rows, list):
        raise ValueError(f"gave no list of scores, but {type(rows).__name__}")
    scores: dict[int, float] = {}
    for row in rows:
        index, score = _read_row(row, score_field)
        if index in scores:
            raise ValueError(f"scored passage {index} twice")
        scores[index] = score
    if sorted(scores) != list(range(count)):
        raise ValueError(f"was sent {count} passages and scored {len(scores)}: {_listed(scores)}")
    return _scaled(np.array([scores[index] for index in range(count)]), scale)


def _read_row(row: object, score_field: str) -> tuple[int, float]:
    if not isinstance(row, dict):
        raise ValueError(f"gave a row that is {type(row).__name__}, no object")
    index, score = row.get("index"), row.get(score_field)
    if not isinstance(index, int) or isinstance(index, bool):
        raise ValueError("gave a row without a whole number in 'index'")
    if not isinstance(score, int | float) or isinstance(score, bool):
        raise ValueError(f"gave passage {index} no number in {score_field!r}")
    return index, _finite(score, index)


def _finite(score: float, index: int) -> float:
    try:
        number = float(score)
    except OverflowError:  # a whole number of more than 308 digits
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"gave passage {index} a score that is not finite")
    return number


def _scaled(scores: np.ndarray, scale: ScoreScale) -> RelevanceScores:
    if scale == "logit":
        # the logistic function, written so that no large score overflows
        scores = (1 + np.tanh(scores / 2)) / 2
    outside = scores[(scores < 0) | (scores > 1)]
    if outside.size:
        raise ValueError(
            f"gave the score {outside[0]:g}, outside [0, 1]: "
            'for a service that gives logits, load it with scores="logit"'
        )
    return np.asarray(scores, dtype=np.float32)


def _listed(scores: dict[int, float]) -> str:
    indices = sorted(scores)
    return f"{indices[:5]} and more" if len(indices) > 5 else str(indices)
