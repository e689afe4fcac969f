"""From a raw score to a probability."""

import numpy as np
import pytest

from recollect.retrieval.calibration import Calibration


def test_the_logistic_curve_is_that_of_its_formula():
    probabilities = Calibration(slope=2.0, intercept=-1.0).probabilities(
        np.array([0.5, 1.0, -3.0], np.float32)
    )
    assert probabilities.tolist() == pytest.approx([0.5, 0.731059, 0.000911], abs=1e-6)


def test_a_score_without_limits_gives_a_probability_without_a_warning():
    probabilities = Calibration(slope=6.0, intercept=-7.0).probabilities(
        np.array([-np.inf, -1e4, 1e4], np.float32)
    )
    assert probabilities.tolist() == [0.0, 0.0, 1.0]
