"""What the first stage of a search says of questions and passages: BM25, cosine and their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ekphory.evaluation.baselines import bm25_scorer, z_scored_mean
from ekphory.training.teacher import BaseModel

FloatMatrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FirstStage:
    """Scores of shape (questions, passages).

    Attributes:
        lexical: BM25; 0 where no word is shared.
        dense: Cosine.
        fused: Mean of the two, each z-scored over the passages.
    """

    lexical: FloatMatrix
    dense: FloatMatrix
    fused: FloatMatrix


def first_stage(passages: Sequence[str], questions: Sequence[str], base: BaseModel) -> FirstStage:
    """Score all passages for every question, as a search in a store that holds only them.

    Raises:
        MissingExtra: bm25s is not installed.
    """
    scorer = bm25_scorer(passages)
    lexical = np.stack([np.nan_to_num(scorer(text), nan=0.0) for text in questions])
    dense = np.asarray(base.encode(questions) @ base.encode(passages).T, np.float64)
    rows = [z_scored_mean(*arms) for arms in zip(lexical, dense, strict=True)]
    return FirstStage(lexical, dense, np.stack(rows))
