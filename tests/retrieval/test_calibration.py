"""From a fused score to a probability."""

from math import exp, log

import numpy as np
import pytest

from ekphory.retrieval.calibration import (
    LEAST_EVIDENCE,
    MEANING_CURVES,
    WORD_CURVES,
    Calibration,
    FusionCalibration,
    LexicalCalibration,
    LexicalCurve,
)

CURVE = Calibration(slope=1.0, steepening=0.5, weight=-0.25, intercept=-1.0)
TWO = exp(2) - 1
"""The evidence whose logarithm counts 2: the curve is 1 / (1 + exp(-(2·s - 1.5)))."""


def scores(*values):
    return np.array(values, np.float32)


def test_the_logistic_curve_is_that_of_its_formula():
    probabilities = CURVE.probabilities(scores(0.75, 1.25, -2.0), evidence=TWO)
    assert probabilities.tolist() == pytest.approx([0.5, 0.731059, 0.004070], abs=1e-6)


def test_a_score_without_limits_gives_a_probability_without_a_warning():
    probabilities = CURVE.probabilities(scores(-np.inf, -1e4, 1e4), evidence=TWO)
    assert probabilities.tolist() == [0.0, 0.0, 1.0]


def test_a_query_that_could_tell_nothing_counts_as_one_of_the_least_evidence():
    nothing, least = (
        CURVE.probabilities(scores(0.5), evidence=evidence) for evidence in (0.0, LEAST_EVIDENCE)
    )
    assert nothing.tolist() == least.tolist()


def test_a_scope_of_documents_and_turns_takes_a_curve_between():
    turns = Calibration(slope=3.0, steepening=0.5, weight=0.25, intercept=-2.0)
    curves = FusionCalibration(documents=CURVE, turns=turns)

    assert curves.among(0.0) == CURVE
    assert curves.among(1.0) == turns
    assert curves.among(0.25) == Calibration(
        slope=1.5, steepening=0.5, weight=-0.125, intercept=-1.25
    )


@pytest.mark.parametrize("turns", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("evidence", [0.0, 6.0, 30.0, 1_000.0])
def test_the_fitted_curves_grow_with_the_score(evidence, turns):
    probabilities = MEANING_CURVES.among(turns).probabilities(
        np.linspace(-1, 2, 50, dtype=np.float32), evidence=evidence
    )
    assert np.all(np.diff(probabilities) >= 0)
    assert probabilities[-1] > probabilities[0]


WORDS = LexicalCurve(slope=2.0, weight=0.5, intercept=-1.0)
"""At `TWO` the logit is 2·ln(s + .02)."""


def test_the_curve_of_words_is_logistic_over_the_logarithm():
    probabilities = WORDS.probabilities(scores(0.98, 0.48), evidence=TWO)
    assert probabilities.tolist() == pytest.approx([0.5, 1 / (1 + exp(-2 * log(0.5)))], abs=1e-6)


def test_a_passage_without_a_word_of_the_query_has_the_least_probability():
    none, few = WORDS.probabilities(scores(0.0, 0.01), evidence=TWO)
    assert 0 < none < few


def test_among_words_too_a_scope_of_both_takes_a_curve_between():
    turns = LexicalCurve(slope=4.0, weight=1.5, intercept=-2.0)
    curves = LexicalCalibration(documents=WORDS, turns=turns)

    assert curves.among(0.0) == WORDS
    assert curves.among(1.0) == turns
    assert curves.among(0.25) == LexicalCurve(slope=2.5, weight=0.75, intercept=-1.25)


@pytest.mark.parametrize("turns", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("evidence", [0.0, 6.0, 30.0, 1_000.0])
def test_a_better_match_is_always_the_more_probable_one(evidence, turns):
    probabilities = WORD_CURVES.among(turns).probabilities(
        np.linspace(0, 0.75, 50, dtype=np.float32), evidence=evidence
    )
    assert np.all(np.diff(probabilities) > 0)
