import math

import numpy as np
import pytest

from ekphory.errors import InvalidInput
from ekphory_lab.training.reranker.export import fit_platt, platt_curve


def numbers(*values):
    return np.array(values, np.float64)


def test_the_curve_gives_each_logit_its_share_of_answers():
    # Platt's targets are .8 and .2, so that 1 has (.8 + .8 + .2) / 3 = .6 and -1 has .4.
    curve = platt_curve(numbers(-1, -1, -1, 1, 1, 1), numbers(0, 0, 1, 0, 1, 1))

    assert curve.slope == pytest.approx(math.log(1.5))
    assert curve.intercept == pytest.approx(0, abs=1e-9)


def test_a_perfect_separation_stays_finite():
    curve = platt_curve(numbers(-2, -1, 1, 2), numbers(0, 0, 1, 1))

    assert math.isfinite(curve.slope)
    assert curve.slope > 0


def test_a_curve_fitted_on_honest_probabilities_is_the_identity():
    random = np.random.default_rng(3)
    logits = [random.normal(-2, 2, 20) for _ in range(2000)]
    relevant = [(random.random(20) < 1 / (1 + np.exp(-each))).astype(np.float64) for each in logits]

    fit = fit_platt(logits, relevant)

    assert fit.scaling.slope == pytest.approx(1, abs=0.03)
    assert fit.scaling.intercept == pytest.approx(0, abs=0.05)
    assert fit.expected_calibration_error < 0.01
    assert fit.observations == 40_000


def test_a_handful_of_questions_is_too_few():
    with pytest.raises(InvalidInput, match="too few questions"):
        fit_platt([numbers(1, 2)] * 3, [numbers(0, 1)] * 3)
