"""Teachers: whatever can say which of two passages answers a question better.

Here they are the gold labels, BM25, a dense model and any reranker; a language model is one as well
(`chat_teacher.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ekphory.models.reranker import RerankingModel
from ekphory.training.reranker.examples import RerankExample

FloatArray = NDArray[np.float64]

_STEEPNESS = 2.0
_SMALLEST = 1e-6


class PreferenceTeacher(Protocol):
    """Compares candidates pair by pair."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def preferences(self, example: RerankExample) -> FloatArray:
        """Say how much rather i than j answers, from 0 to 1; shape (n, n), p_ij + p_ji = 1.

        Raises:
            ServiceError: A remote model failed after all repeats, or answered nonsense.
        """
        ...


@dataclass(frozen=True, slots=True)
class LabelTeacher:
    """The gold labels: an answer is better than what is none, two of a kind are equal."""

    name: str = "labels"

    def preferences(self, example: RerankExample) -> FloatArray:
        """Compare by the labels alone."""
        relevant = np.array([candidate.relevant for candidate in example.candidates], np.float64)
        return (1 + relevant[:, None] - relevant[None, :]) / 2


@dataclass(frozen=True, slots=True)
class ScoreTeacher:
    """Anything that scores: the higher score is better, the surer the further apart they are.

    Attributes:
        name: What reports call it.
        scores: Gives one score for each candidate.
    """

    name: str
    scores: Callable[[RerankExample], FloatArray]

    def preferences(self, example: RerankExample) -> FloatArray:
        """Compare scores, in standard deviations over the candidates, by a logistic curve."""
        scores = self.scores(example)
        deviation = scores.std()
        standardised = scores / deviation if deviation > 0 else np.zeros_like(scores)
        gaps = standardised[:, None] - standardised[None, :]
        return np.asarray(1 / (1 + np.exp(-_STEEPNESS * gaps)))


def lexical_teacher() -> ScoreTeacher:
    """Take BM25 as it was among the passages that the candidates were found in."""
    return ScoreTeacher("bm25", lambda example: _column(example, "lexical"))


def dense_teacher() -> ScoreTeacher:
    """Take the cosine of the embedder that found the candidates."""
    return ScoreTeacher("dense", lambda example: _column(example, "dense"))


def reranking_teacher(model: RerankingModel) -> ScoreTeacher:
    """Take any reranker, by the logit of its scores."""

    def scores(example: RerankExample) -> FloatArray:
        passages = [candidate.passage for candidate in example.candidates]
        given = np.asarray(model.score(example.query, passages), np.float64)
        given = np.clip(given, _SMALLEST, 1 - _SMALLEST)
        return np.asarray(np.log(given / (1 - given)))

    return ScoreTeacher(model.name, scores)


def _column(example: RerankExample, name: str) -> FloatArray:
    return np.array([getattr(candidate, name) for candidate in example.candidates], np.float64)
