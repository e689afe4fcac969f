"""The teacher: the z-scored mean of BM25 and the base model, which ranks better than either.

On conversations BM25 finds what a small dense model misses. Following the mean of the two inside
each group teaches the dense model the weight of exact words without giving up its own meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ekphory.evaluation.baselines import bm25_scorer, z_scored_mean
from ekphory.training.question_groups import QuestionGroup

FloatMatrix = NDArray[np.float32]


class BaseModel(Protocol):
    """The dense half of the teacher."""

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed passages; shape (len(texts), dimension), rows of length 1."""
        ...

    def encode_query(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed questions likewise, with what the model puts before them."""
        ...


@dataclass(frozen=True, slots=True)
class TeacherView:
    """What the teacher says of one group.

    Attributes:
        scores: In standard deviations over the group, shape (questions, passages).
        passages: The base model's vectors of the passages, rows of length 1.
        questions: The base model's vectors of the questions, rows of length 1.
    """

    scores: FloatMatrix
    passages: FloatMatrix
    questions: FloatMatrix


def teacher_view(group: QuestionGroup, base: BaseModel) -> TeacherView:
    """Score all passages of a group for each of its questions.

    Raises:
        MissingExtra: bm25s is not installed.
    """
    lexical = bm25_scorer(group.passages)
    texts = [question.text for question in group.questions]
    passages = np.asarray(base.encode(group.passages), np.float32)
    questions = np.asarray(base.encode_query(texts), np.float32)
    dense = questions @ passages.T
    rows = [
        z_scored_mean(lexical(text), dense[place].astype(np.float64))
        for place, text in enumerate(texts)
    ]
    return TeacherView(np.asarray(rows, np.float32), passages, questions)
