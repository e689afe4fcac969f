"""Fits the curve that turns the fused score into a probability, on training data alone.

Every question is searched among a few hundred other passages, as in a scope of that size; each
returned passage is one observation: its fused score, and whether it answers the question.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.errors import DatasetError
from recollect.memory import Memory
from recollect.models.embedder import Embedder
from recollect.retrieval.calibration import Calibration

SQUAD_SENTENCES = "squad_sentences.jsonl.gz"
QMSUM = "qmsum_train.jsonl.gz"
_SCOPE_SENTENCES = 600
_DEPTH = 50
_LONGEST_SPAN = 6
_NEWTON_STEPS = 50

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CalibrationFit:
    """A fitted curve and how well it holds on questions that it was not fitted on.

    Attributes:
        calibration: The curve.
        observations: Number of scored passages that it was fitted on.
        expected_calibration_error: On held-out questions, ten bins of equal width.
    """

    calibration: Calibration
    observations: int
    expected_calibration_error: float


def fit_fusion_calibration(
    directory: Path, *, scopes: int = 8, embedder: Embedder | None = None
) -> CalibrationFit:
    """Fit on SQuAD questions to sentences and QMSum questions to meeting turns.

    Args:
        directory: Holds `squad_sentences.jsonl.gz` and `qmsum_train.jsonl.gz`.
        scopes: How many scopes of each kind; every fourth is held out.
        embedder: None for the bundled one.

    Raises:
        DatasetError: A file is missing.
    """
    sources = [_squad_scopes(directory / SQUAD_SENTENCES), _qmsum_scopes(directory / QMSUM)]
    fitted: list[tuple[FloatArray, FloatArray]] = []
    held_out: list[tuple[FloatArray, FloatArray]] = []
    for source in sources:
        for number in range(scopes):
            passages, questions = next(source)
            part = held_out if number % 4 == 3 else fitted
            part.append(_observe(passages, questions, embedder))
    scores, relevant = (np.concatenate(column) for column in zip(*fitted, strict=True))
    calibration = fit_logistic(scores, relevant)
    test_scores, test_relevant = (np.concatenate(column) for column in zip(*held_out, strict=True))
    probabilities = calibration.probabilities(test_scores.astype(np.float32))
    error = expected_calibration_error(probabilities.astype(np.float64), test_relevant)
    return CalibrationFit(calibration, len(scores), error)


def fit_logistic(scores: FloatArray, relevant: FloatArray) -> Calibration:
    """Maximum likelihood of a logistic curve by Newton's method; shapes (observations,)."""
    design = np.stack([scores, np.ones_like(scores)], axis=1)
    weights = np.zeros(2)
    for _ in range(_NEWTON_STEPS):
        probabilities = 1 / (1 + np.exp(-(design @ weights)))
        gradient = design.T @ (relevant - probabilities)
        curvature = probabilities * (1 - probabilities)
        step = np.linalg.solve(design.T @ (design * curvature[:, None]), gradient)
        weights += step
        if float(np.abs(step).max()) < 1e-9:
            break
    return Calibration(slope=float(weights[0]), intercept=float(weights[1]))


def expected_calibration_error(
    probabilities: FloatArray, relevant: FloatArray, *, bins: int = 10
) -> float:
    """Mean |predicted - observed| over bins of equal width, weighted by their size.

    Source: Guo et al., "On Calibration of Modern Neural Networks", ICML 2017.
    """
    places = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    error = 0.0
    for place in range(bins):
        inside = places == place
        if inside.any():
            gap = abs(float(probabilities[inside].mean()) - float(relevant[inside].mean()))
            error += gap * float(inside.mean())
    return error


def _observe(
    passages: list[dict[str, Any]], questions: dict[str, set[str]], embedder: Embedder | None
) -> tuple[FloatArray, FloatArray]:
    scores: list[float] = []
    relevant: list[float] = []
    with tempfile.TemporaryDirectory() as place, Memory(place, embedder=embedder) as memory:
        memory.add_many(passages)
        for question, answers in questions.items():
            for hit in memory.search(question, k=_DEPTH):
                scores.append(hit.scores["fused"])
                relevant.append(float(hit.id in answers))
    return np.array(scores), np.array(relevant)


def _squad_scopes(path: Path) -> Iterator[tuple[list[dict[str, Any]], dict[str, set[str]]]]:
    sentences: dict[str, str] = {}
    questions: dict[str, set[str]] = {}
    for row in _rows(path):
        sentence_id = sentences.setdefault(row["sentence"], str(len(sentences)))
        if int(sentence_id) % 3 == 0:
            questions.setdefault(row["query"], set()).add(sentence_id)
        if len(sentences) == _SCOPE_SENTENCES:
            yield [{"id": name, "text": text} for text, name in sentences.items()], questions
            sentences, questions = {}, {}


def _qmsum_scopes(path: Path) -> Iterator[tuple[list[dict[str, Any]], dict[str, set[str]]]]:
    for row in _rows(path):
        passages = [
            {
                "id": str(place),
                "text": turn["text"],
                "producer": turn["speaker"],
                "session": row["id"],
                "sequence": place,
            }
            for place, turn in enumerate(row["turns"])
            if turn["text"].strip()
        ]
        answers = {entry["query"]: _turns(entry["spans"]) for entry in row["queries"]}
        # A span of dozens of turns says where a topic was, not which turn answers.
        yield passages, {q: turns for q, turns in answers.items() if len(turns) <= _LONGEST_SPAN}


def _turns(spans: list[list[str]]) -> set[str]:
    return {str(turn) for first, last in spans for turn in range(int(first), int(last) + 1)}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)
    except FileNotFoundError as error:
        raise DatasetError(
            f"{path}: no such file. Give the folder with the training data."
        ) from error
