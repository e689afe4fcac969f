import numpy as np
import pytest

from ekphory_lab.evaluation.metrics import calibration_scores, expected_calibration_error


def test_probabilities_that_hold_have_no_error():
    said = np.array([0.25, 0.25, 0.25, 0.25])
    assert expected_calibration_error(said, np.array([1.0, 0.0, 0.0, 0.0])) == 0.0


def test_the_error_is_the_mean_gap_of_the_bins_weighted_by_size():
    said = np.array([0.9, 0.9, 0.9, 0.1])
    right = np.array([1.0, 0.0, 0.0, 0.0])
    assert expected_calibration_error(said, right) == pytest.approx(0.75 * (0.9 - 1 / 3) + 0.025)


def test_a_probability_of_one_is_in_the_last_bin():
    assert expected_calibration_error(np.array([1.0]), np.array([1.0])) == 0.0


def test_the_first_hit_is_judged_apart_from_all_hits():
    found = calibration_scores([[(0.8, True), (0.2, False)], [(0.6, False)]])
    assert (found.first_said, found.first_right) == (pytest.approx(0.7), 0.5)
    # Of two questions nothing can be told.
    assert found.first_hit == 0
    assert found.hits == pytest.approx((0.2 + 0.2 + 0.6) / 3)


def test_without_any_hit_there_is_nothing_to_judge():
    assert calibration_scores([[], []]) is None
