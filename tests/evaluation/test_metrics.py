import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.errors import InvalidInput
from ekphory_lab.evaluation.metrics import (
    CONVERSATION_MEASURES,
    MULTIHOP_MEASURES,
    all_gold,
    average_precision,
    bootstrap_intervals,
    calibration_scores,
    expected_calibration_error,
    measure,
    ndcg,
    paired_test,
)

QRELS = {"a": 1, "b": 1, "z": 1, "not": 0}
RANKING = ["x", "a", "not", "b"]


def test_measures_are_what_their_formulas_say():
    # Average precision divides by all relevant passages.
    assert average_precision(QRELS, RANKING) == pytest.approx((1 / 2 + 2 / 4) / 3)
    # NDCG takes the gain as it is.
    qrels = {"a": 3, "b": 1}
    found = 1 / math.log2(2) + 3 / math.log2(3)
    ideal = 3 / math.log2(2) + 1 / math.log2(3)
    assert ndcg(qrels, ["b", "a"], cutoff=10) == pytest.approx(found / ideal)
    # All gold needs every relevant passage.
    assert all_gold({"a": 1, "b": 1}, RANKING, cutoff=4) == 1.0
    assert all_gold({"a": 1, "b": 1}, RANKING, cutoff=3) == 0.0


@given(
    qrels=st.dictionaries(st.integers(0, 30).map(str), st.integers(0, 3), max_size=10),
    ranking=st.permutations([str(number) for number in range(30)]),
)
def test_every_measure_lies_between_zero_and_one(qrels, ranking):
    for each in CONVERSATION_MEASURES + MULTIHOP_MEASURES:
        assert 0.0 <= each.score(qrels, ranking) <= 1.0, each.name
        # An empty ranking scores zero.
        assert each.score({"a": 1}, []) == 0.0, each.name


@pytest.mark.parametrize("name", ["MAP@", "R@0", "recall", "NDCG", "MAP@10", ""])
def test_an_unknown_measure_is_refused_by_name(name):
    with pytest.raises(InvalidInput, match="there is no such measure"):
        measure(name)


def test_the_calibration_error_is_the_mean_gap_of_the_bins_weighted_by_size():
    # Probabilities that hold have no error.
    said = np.array([0.25, 0.25, 0.25, 0.25])
    assert expected_calibration_error(said, np.array([1.0, 0.0, 0.0, 0.0])) == 0.0
    said = np.array([0.9, 0.9, 0.9, 0.1])
    right = np.array([1.0, 0.0, 0.0, 0.0])
    assert expected_calibration_error(said, right) == pytest.approx(0.75 * (0.9 - 1 / 3) + 0.025)
    # The first hit is judged apart from all hits.
    found = calibration_scores([[(0.8, True), (0.2, False)], [(0.6, False)]])
    assert (found.first_said, found.first_right) == (pytest.approx(0.7), 0.5)
    # Of two questions nothing can be told.
    assert found.first_hit == 0
    assert found.hits == pytest.approx((0.2 + 0.2 + 0.6) / 3)
    # Without any hit there is nothing to judge.
    assert calibration_scores([[], []]) is None


def test_the_interval_encloses_the_mean():
    scores = np.array([[0.0], [1.0], [1.0], [0.0], [1.0]])
    estimate = bootstrap_intervals(scores)[0]
    assert estimate.mean == pytest.approx(0.6)
    assert 0.0 <= estimate.low < 0.6 < estimate.high <= 1.0


def test_runs_are_compared_query_by_query():
    # Equal runs do not differ.
    scores = np.array([0.1, 0.9, 0.5])
    test = paired_test(scores, scores)
    assert (test.difference, test.p_value, test.better, test.worse) == (0.0, 1.0, 0, 0)
    # Four wins of four have p = 1/8. All signs equal: 2 of the 16 assignments.
    test = paired_test(np.zeros(4), np.ones(4), resamples=50_000)
    assert test.p_value == pytest.approx(2 / 16, abs=0.01)
    assert (test.better, test.worse) == (4, 0)
    # Swapping the runs changes the sign only.
    generator = np.random.default_rng(2)
    first, second = generator.random(50), generator.random(50)
    there, back = paired_test(first, second), paired_test(second, first)
    assert there.difference == -back.difference
    assert there.p_value == back.p_value
