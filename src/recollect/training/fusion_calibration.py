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
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.errors import DatasetError
from recollect.evaluation.calibration import expected_calibration_error
from recollect.memory import Memory
from recollect.models.embedder import EmbeddingModel
from recollect.retrieval.calibration import LEAST_EVIDENCE, Calibration

SQUAD_SENTENCES = "squad_sentences.jsonl.gz"
_SCOPE_SENTENCES = 600
_DEPTH = 50
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


@dataclass(frozen=True, slots=True)
class Observations:
    """Scored passages: fused score, evidence of the query, relevance (0 or 1); parallel."""

    scores: FloatArray
    evidence: FloatArray
    relevant: FloatArray


def fit_fusion_calibration(
    directory: Path, *, scopes: int = 8, embedder: EmbeddingModel | None = None
) -> CalibrationFit:
    """Fit on SQuAD questions to sentences.

    Args:
        directory: Holds `squad_sentences.jsonl.gz`.
        scopes: How many scopes of 600 sentences; every fourth is held out.
        embedder: None for the bundled one.

    Raises:
        DatasetError: A file is missing.
    """
    fitted: list[Observations] = []
    held_out: list[Observations] = []
    for number, (passages, questions) in enumerate(
        islice(_squad_scopes(directory / SQUAD_SENTENCES), scopes)
    ):
        part = held_out if number % 4 == 3 else fitted
        part.append(_observe(passages, questions, embedder))
    known = _joined(fitted)
    calibration = fit_logistic(known.scores, known.evidence, known.relevant)
    tests = _joined(held_out)
    probabilities = [
        calibration.probabilities(np.array([score], np.float32), evidence=evidence)[0]
        for score, evidence in zip(tests.scores, tests.evidence, strict=True)
    ]
    error = expected_calibration_error(np.array(probabilities, np.float64), tests.relevant)
    return CalibrationFit(calibration, len(known.scores), error)


def fit_logistic(scores: FloatArray, evidence: FloatArray, relevant: FloatArray) -> Calibration:
    """Maximum likelihood of the curve by Newton's method; shapes (observations,)."""
    amount = np.log1p(np.maximum(evidence, LEAST_EVIDENCE))
    design = np.stack([scores, scores * amount, amount, np.ones_like(scores)], axis=1)
    weights = np.zeros(design.shape[1])
    for _ in range(_NEWTON_STEPS):
        probabilities = 1 / (1 + np.exp(-(design @ weights)))
        gradient = design.T @ (relevant - probabilities)
        curvature = probabilities * (1 - probabilities)
        step = np.linalg.solve(design.T @ (design * curvature[:, None]), gradient)
        weights += step
        if float(np.abs(step).max()) < 1e-9:
            break
    slope, steepening, weight, intercept = map(float, weights)
    return Calibration(slope, steepening, weight, intercept)


def _joined(parts: list[Observations]) -> Observations:
    columns = zip(*((part.scores, part.evidence, part.relevant) for part in parts), strict=True)
    return Observations(*(np.concatenate(column) for column in columns))


def _observe(
    passages: list[dict[str, Any]], questions: dict[str, set[str]], embedder: EmbeddingModel | None
) -> Observations:
    rows: list[tuple[float, float, bool]] = []
    with tempfile.TemporaryDirectory() as place, Memory(place, embedder=embedder) as memory:
        memory.add_many(passages)
        for question, answers in questions.items():
            for hit in memory.search(question, k=_DEPTH):
                scores = hit.scores
                rows.append((scores["fused"], scores["lexical_bound"], hit.id in answers))
    return Observations(*np.array(rows, np.float64).T)


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


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)
    except FileNotFoundError as error:
        raise DatasetError(
            f"{path}: no such file. Give the folder with the training data."
        ) from error
