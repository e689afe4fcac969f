"""Fits the curves that turn the fused score into a probability; no evaluation data is read.

Every question is searched among a few hundred other passages, as in a scope of that size; each
returned passage is one observation: its fused score, and whether it answers the question. Scopes
of documents and of conversations have a curve each, and so do searches by meaning and words and
searches by words alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from ekphory.errors import DatasetError, InvalidInput
from ekphory.memory import Memory
from ekphory.models.embedder import EmbeddingModel
from ekphory.retrieval.calibration import (
    SMALLEST_SHARE,
    Calibration,
    LexicalCurve,
    ScopeCurves,
    evidence_amount,
)
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import PRESETS
from ekphory.retrieval.stages.find import Fuse
from ekphory_lab.evaluation.metrics import FloatArray, expected_calibration_error
from ekphory_lab.training.development_set import DEVELOPMENT_CONVERSATIONS
from ekphory_lab.training.probability_scopes import SQUAD_SENTENCES, Scope, pool_scopes
from ekphory_lab.training.texts import each_row

_SCOPE_SENTENCES = 600
_DEPTH = 50
_HELD_OUT = 4
_NEWTON_STEPS = 50
_RIDGE = 1e-3
_LEAST_MISS = 1e-12
"""Too little to be seen in a fit, enough for data in which the score tells every answer."""


@dataclass(frozen=True, slots=True)
class CurveFit:
    """A fitted curve and how well it holds on questions that it was not fitted on.

    Attributes:
        curve: The curve.
        observations: Number of scored passages that it was fitted on.
        expected_calibration_error: On held-out questions, ten bins of equal width.
    """

    curve: Calibration | LexicalCurve
    observations: int
    expected_calibration_error: float


@dataclass(frozen=True, slots=True)
class CalibrationFit:
    """The curves that a search by one preset takes.

    Attributes:
        documents: Of SQuAD's sentences.
        turns: Of written conversations on which nothing was trained.
    """

    documents: CurveFit
    turns: CurveFit


@dataclass(frozen=True, slots=True)
class Observations:
    """Scored passages: fused score, evidence of the query, relevance (0 or 1); parallel."""

    scores: FloatArray
    evidence: FloatArray
    relevant: FloatArray


def fit_fusion_calibration(
    directory: Path,
    *,
    scopes: int = 8,
    conversations: Path = DEVELOPMENT_CONVERSATIONS,
    embedder: EmbeddingModel | None = None,
) -> dict[str, CalibrationFit]:
    """Fit on SQuAD questions to sentences, and on questions to written conversations.

    Args:
        directory: Holds `squad_sentences.jsonl.gz`.
        scopes: At most so many of each, at least 4; every fourth is held out. The conversations
            of the package make 8.
        conversations: Folder of written conversations.
        embedder: None for the bundled one.

    Returns:
        The curves of each of `FITTED_PRESETS`.

    Raises:
        DatasetError: A file is missing, or holds fewer than four scopes.
        InvalidInput: `scopes` is below 4.
    """
    if scopes < _HELD_OUT:
        raise InvalidInput("scopes", scopes, "leaves none to be held out", "Give 4 or more.")
    documents = islice(_squad_scopes(directory / SQUAD_SENTENCES), scopes)
    turns = islice(pool_scopes(conversations), scopes)
    among_documents = _fitted(documents, embedder, source=SQUAD_SENTENCES)
    among_turns = _fitted(turns, embedder, source=str(conversations))
    return {
        name: CalibrationFit(among_documents[name], among_turns[name]) for name in FITTED_PRESETS
    }


def _fitted(
    scopes: Iterable[Scope], embedder: EmbeddingModel | None, *, source: str
) -> dict[str, CurveFit]:
    observed = [_observe(scope, embedder) for scope in scopes]
    if len(observed) < _HELD_OUT:
        raise DatasetError(
            f"{source}: {len(observed)} scopes, so none is held out. Give data for {_HELD_OUT}."
        )
    return {
        name: _curve_fit([each[name] for each in observed], FITTED_PRESETS[name])
        for name in FITTED_PRESETS
    }


def _curve_fit(observed: list[Observations], fit: CurveFitter) -> CurveFit:
    tests = _joined(observed[_HELD_OUT - 1 :: _HELD_OUT])
    known = _joined(
        [each for number, each in enumerate(observed, start=1) if number % _HELD_OUT != 0]
    )
    curve = fit(known.scores, known.evidence, known.relevant)
    probabilities = [
        curve.probabilities(np.array([score], np.float32), evidence=evidence)[0]
        for score, evidence in zip(tests.scores, tests.evidence, strict=True)
    ]
    error = expected_calibration_error(np.array(probabilities, np.float64), tests.relevant)
    return CurveFit(curve, len(known.scores), error)


def fit_logistic(scores: FloatArray, evidence: FloatArray, relevant: FloatArray) -> Calibration:
    """Maximum likelihood of the curve of both arms; shapes (observations,)."""
    amount = _amounts(evidence)
    design = np.stack([scores, scores * amount, amount, np.ones_like(scores)], axis=1)
    slope, steepening, weight, intercept = most_likely(design, relevant)
    return Calibration(slope, steepening, weight, intercept)


def fit_lexical(scores: FloatArray, evidence: FloatArray, relevant: FloatArray) -> LexicalCurve:
    """Maximum likelihood of the curve of words alone; shapes (observations,)."""
    shares = np.log(scores + SMALLEST_SHARE)
    design = np.stack([shares, _amounts(evidence), np.ones_like(scores)], axis=1)
    slope, weight, intercept = most_likely(design, relevant)
    return LexicalCurve(slope, weight, intercept)


CurveFitter = Callable[[FloatArray, FloatArray, FloatArray], Calibration | LexicalCurve]
FITTED_PRESETS: Mapping[str, CurveFitter] = {"balanced": fit_logistic, "fast": fit_lexical}
"""Both arms, and words alone."""


class _Unscaled:
    """Curves before there are any: they keep the order of the scores."""

    def among(self, turn_share: float) -> Calibration:  # noqa: ARG002  of the protocol
        return Calibration(slope=1.0, steepening=0.0, weight=0.0, intercept=0.0)


def fused_with(fuse: Fuse, curves: ScopeCurves) -> Fuse:
    """Return the same stage with other curves."""
    return Fuse(
        method=fuse.method,
        lexical_weight=fuse.lexical_weight,
        list_per_hit=fuse.list_per_hit,
        calibration=curves,
    )


def _uncalibrated(preset: Pipeline) -> Pipeline:
    """Return a pipeline that needs no fitted constants."""
    stages = [
        fused_with(stage, _Unscaled()) if isinstance(stage, Fuse) else stage
        for stage in preset.stages
        if stage.name not in ("calibrate", "reranker gate", "rerank")
    ]
    return Pipeline(preset.name, stages)


def _amounts(evidence: FloatArray) -> FloatArray:
    return np.array([evidence_amount(each) for each in evidence])


def most_likely(
    design: FloatArray,
    relevant: FloatArray,
    counts: FloatArray | None = None,
    factors: FloatArray | None = None,
) -> list[float]:
    """Return the coefficients of a logistic regression, by Fisher's scoring.

    Args:
        design: Shape (observations, coefficients).
        relevant: 0 or 1, shape (observations,).
        counts: How often each observation counts; None for once.
        factors: In (0, 1], what the curve is multiplied by to be the probability of each; None
            for 1.
    """
    times = np.ones(len(design)) if counts is None else counts
    believed = np.ones(len(design)) if factors is None else factors
    weights = np.zeros(design.shape[1])
    for _ in range(_NEWTON_STEPS):
        curve = 1 / (1 + np.exp(-(design @ weights)))
        odds = (1 - curve) / np.maximum(1 - believed * curve, _LEAST_MISS)
        gradient = design.T @ (times * (relevant - believed * curve) * odds) - _RIDGE * weights
        information = times * believed * curve * (1 - curve) * odds
        curvature = design.T @ (design * information[:, None])
        step = np.linalg.solve(curvature + _RIDGE * np.eye(len(weights)), gradient)
        weights += step
        if float(np.abs(step).max()) < 1e-9:
            break
    return [float(each) for each in weights]


def _joined(parts: list[Observations]) -> Observations:
    columns = zip(*((part.scores, part.evidence, part.relevant) for part in parts), strict=True)
    return Observations(*(np.concatenate(column) for column in columns))


def _observe(scope: Scope, embedder: EmbeddingModel | None) -> dict[str, Observations]:
    with tempfile.TemporaryDirectory() as place, Memory(place, embedder=embedder) as memory:
        memory.add_many(scope.passages)
        return {name: _observations(memory, scope, name) for name in FITTED_PRESETS}


def _observations(memory: Memory, scope: Scope, preset: str) -> Observations:
    rows: list[tuple[float, float, bool]] = []
    pipeline = _uncalibrated(PRESETS[preset])
    for question, answers in scope.questions.items():
        for hit in memory.search(question, k=_DEPTH, now=scope.now, preset=pipeline):
            scores = hit.scores
            rows.append((scores["fused"], scores["lexical_bound"], hit.id in answers))
    return Observations(*np.array(rows, np.float64).reshape(-1, 3).T)


def _squad_scopes(path: Path) -> Iterator[Scope]:
    sentences: dict[str, str] = {}
    questions: dict[str, set[str]] = {}
    for row in each_row(path):
        sentence_id = sentences.setdefault(row["sentence"], str(len(sentences)))
        if int(sentence_id) % 3 == 0:
            questions.setdefault(row["query"], set()).add(sentence_id)
        if len(sentences) == _SCOPE_SENTENCES:
            yield Scope(
                "documents",
                [{"id": name, "text": text} for text, name in sentences.items()],
                {query: frozenset(answers) for query, answers in questions.items()},
            )
            sentences, questions = {}, {}
