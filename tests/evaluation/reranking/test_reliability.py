"""Calibration errors, thresholds and their picture."""

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory_lab.evaluation.reranking.benchmark import (
    calibration_error,
    precision_threshold,
    reliability,
)
from ekphory_lab.evaluation.reranking.report import reliability_svg


def array(*values):
    return np.array(values, np.float64)


def test_probabilities_that_hold_have_no_error():
    found = calibration_error(np.full(30, 0.5), array(*[1, 0] * 15))
    assert found.equal_width == pytest.approx(0.0)
    assert found.equal_mass == pytest.approx(0.0)


def test_bins_of_equal_width_average_what_lies_close_together():
    # .9 and .91 share a bin: said .905, right .5; .1 has its own: said .1, right 0.
    found = calibration_error(array(0.9, 0.91, 0.1, 0.1), array(1, 0, 0, 0))
    assert found.equal_width == pytest.approx(0.405 / 2 + 0.1 / 2)


def test_bins_of_equal_mass_are_finer_where_most_probabilities_are():
    said = array(*[0.001] * 15, *[0.06] * 15)
    right = array(*[0] * 15, *[0, 1] * 7, 0)
    found = calibration_error(said, right)
    assert found.equal_width < found.equal_mass


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 1.0])), min_size=1))
def test_an_error_lies_between_none_and_all(observations):
    said, right = np.array(observations, np.float64).T
    found = calibration_error(said, right)
    assert 0 <= found.equal_width <= 1
    assert 0 <= found.equal_mass <= 1 + 1e-9


def test_a_threshold_is_the_least_probability_that_gives_the_precision():
    # 20 at .9, of which 18 answer; 20 at .5, of which 4 answer.
    said = array(*[0.9] * 20, *[0.5] * 20)
    right = array(*[1] * 18, 0, 0, *[1] * 4, *[0] * 16)
    assert precision_threshold(said, right, 0.9).threshold == 0.9
    assert precision_threshold(said, right, 0.9).recall == pytest.approx(18 / 22)
    assert precision_threshold(said, right, 0.5).threshold == 0.5
    assert precision_threshold(said, right, 0.95).threshold is None


def test_few_candidates_give_no_threshold():
    assert precision_threshold(array(0.9, 0.8), array(1, 1), 0.5).threshold is None


def test_the_best_candidate_of_each_question_is_looked_at_alone():
    found = reliability(
        [(array(0.2, 0.8), array(0, 1)), (array(0.8, 0.1), array(0, 0)), (array(), array())]
    )
    assert (found.candidates, found.relevant) == (4, 1)
    assert found.best.equal_width == pytest.approx(0.3)
    assert reliability([(array(), array())]) is None


def test_the_picture_has_a_circle_for_each_bin_and_escapes_its_title():
    found = reliability([(array(0.05, 0.5, 0.95), array(0, 1, 1))])
    drawn = ElementTree.fromstring(reliability_svg(found, title="a <b> & c"))
    kinds = [each.tag.rpartition("}")[2] for each in drawn.iter()]
    assert kinds.count("circle") == 3
    assert "a <b> & c" in [each.text for each in drawn.iter()]
