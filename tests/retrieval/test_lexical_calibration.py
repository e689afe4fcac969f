"""From a lexical share alone to a probability."""

from math import exp, log

import numpy as np
import pytest

from recollect.retrieval.lexical_calibration import (
    LEXICAL_CALIBRATION,
    LexicalCalibration,
    LexicalCurve,
)

CURVE = LexicalCurve(slope=2.0, weight=0.5, intercept=-1.0)
TWO = exp(2) - 1
"""The evidence whose logarithm counts 2: the logit is 2·ln(s + .02)."""


def scores(*values):
    return np.array(values, np.float32)


def test_the_logistic_curve_is_that_of_its_formula():
    probabilities = CURVE.probabilities(scores(0.98, 0.48), evidence=TWO)
    assert probabilities.tolist() == pytest.approx([0.5, 1 / (1 + exp(-2 * log(0.5)))], abs=1e-6)


def test_a_passage_without_a_word_of_the_query_has_the_least_probability():
    none, few = CURVE.probabilities(scores(0.0, 0.01), evidence=TWO)
    assert 0 < none < few


def test_a_scope_of_documents_and_turns_takes_a_curve_between():
    turns = LexicalCurve(slope=4.0, weight=1.5, intercept=-2.0)
    curves = LexicalCalibration(documents=CURVE, turns=turns)

    assert curves.among(0.0) == CURVE
    assert curves.among(1.0) == turns
    assert curves.among(0.25) == LexicalCurve(slope=2.5, weight=0.75, intercept=-1.25)


@pytest.mark.parametrize("turns", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("evidence", [0.0, 6.0, 30.0, 1_000.0])
def test_a_better_match_is_always_the_more_probable_one(evidence, turns):
    probabilities = LEXICAL_CALIBRATION.among(turns).probabilities(
        np.linspace(0, 0.75, 50, dtype=np.float32), evidence=evidence
    )
    assert np.all(np.diff(probabilities) > 0)
