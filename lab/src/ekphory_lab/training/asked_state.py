"""Learns from written questions whether one asks for an earlier state of what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ekphory.retrieval.asked_state import ASKED_STATE_KIND, PastWeights, question_features
from ekphory.retrieval.calibration import FittedFile
from ekphory_lab.evaluation.metrics import FloatArray, precision_and_recall
from ekphory_lab.training.changes import CHANGES, Scenario, StateQuestion, of_part
from ekphory_lab.training.texts import sha256_of_texts

LEAST_QUESTIONS = 4
"""A word or pair of fewer questions has no weight of its own."""
PENALTY = 3e-4
_STEPS, _RATE = 400, 0.05
_LEAST_WEIGHT = 0.02


def learn_asked_state(scenarios: Sequence[Scenario]) -> FittedFile:
    """Fit on the questions for training; measured on those that are held back."""
    training = _questions(of_part("training", scenarios))
    weights = fit_past_weights(training)
    return FittedFile(
        kind=ASKED_STATE_KIND,
        command="ekphory train asked-state",
        models={},
        data={CHANGES.name: sha256_of_texts(CHANGES)},
        seed=0,
        measured=measure_past(weights, _questions(of_part("held back", scenarios))),
        values={"intercept": weights.intercept, "weights": dict(weights.weights)},
    )


def fit_past_weights(questions: Sequence[StateQuestion]) -> PastWeights:
    """Fit what tells that a question asks for an earlier state."""
    texts = [question.text for question in questions]
    return fit_word_weights(texts, [question.is_past for question in questions])


def fit_word_weights(
    texts: Sequence[str], wanted: Sequence[bool], *, least: int = LEAST_QUESTIONS
) -> PastWeights:
    """Fit the logistic regression with a penalty on squared weights, by Adam over all questions.

    A word or pair of fewer than `least` questions has no weight of its own.
    """
    features = [question_features(text) for text in texts]
    counts = Counter(feature for found in features for feature in found)
    names = sorted(name for name, count in counts.items() if count >= least)
    place_of = {name: place for place, name in enumerate(names)}
    inputs = np.zeros((len(texts), len(names) + 1))
    inputs[:, -1] = 1.0
    for row, found in zip(inputs, features, strict=True):
        row[[place_of[name] for name in found if name in place_of]] = 1.0
    fitted = _fit(inputs, np.array(wanted, np.float64))
    rounded = {name: round(float(fitted[place]), 3) for name, place in place_of.items()}
    kept = {name: weight for name, weight in rounded.items() if abs(weight) >= _LEAST_WEIGHT}
    return PastWeights(round(float(fitted[-1]), 3), kept)


def measure_past(weights: PastWeights, questions: Sequence[StateQuestion]) -> dict[str, float]:
    """Return how well weights tell questions apart that they were not fitted on."""
    said = np.array([weights.probability(question.text) > 0.5 for question in questions])
    true = np.array([question.is_past for question in questions])
    precision, recall = precision_and_recall(said, true)
    accuracy = round(float((said == true).mean()), 4)
    return {"accuracy": accuracy, "precision": precision, "recall": recall}


def _questions(scenarios: Sequence[Scenario]) -> list[StateQuestion]:
    return [question for scenario in scenarios for question in scenario.questions]


def _fit(inputs: FloatArray, wanted: FloatArray) -> FloatArray:
    weights = np.zeros(inputs.shape[1])
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    penalised = np.ones_like(weights)
    penalised[-1] = 0.0
    for step in range(1, _STEPS + 1):
        found = 1 / (1 + np.exp(-inputs @ weights))
        gradient = inputs.T @ (found - wanted) / len(wanted) + PENALTY * penalised * weights
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        rate = _RATE / (1 - 0.9**step)
        weights -= rate * mean / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return weights
