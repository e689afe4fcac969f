import numpy as np
import pytest

from ekphory_lab.evaluation.metrics import bootstrap_intervals, paired_test


def test_the_interval_encloses_the_mean():
    scores = np.array([[0.0], [1.0], [1.0], [0.0], [1.0]])
    estimate = bootstrap_intervals(scores)[0]
    assert estimate.mean == pytest.approx(0.6)
    assert 0.0 <= estimate.low < 0.6 < estimate.high <= 1.0


def test_equal_scores_have_an_interval_without_width():
    estimate = bootstrap_intervals(np.full((10, 1), 0.25))[0]
    assert (estimate.low, estimate.high) == (pytest.approx(0.25), pytest.approx(0.25))


def test_the_same_seed_gives_the_same_interval():
    scores = np.random.default_rng(0).random((50, 3))
    assert bootstrap_intervals(scores, seed=7) == bootstrap_intervals(scores, seed=7)
    assert bootstrap_intervals(scores, seed=7) != bootstrap_intervals(scores, seed=8)


def test_every_measure_gets_its_own_interval():
    scores = np.column_stack([np.zeros(20), np.ones(20)])
    low, high = bootstrap_intervals(scores)
    assert (low.mean, high.mean) == (0.0, 1.0)


def test_equal_runs_do_not_differ():
    scores = np.array([0.1, 0.9, 0.5])
    test = paired_test(scores, scores)
    assert (test.difference, test.p_value, test.better, test.worse) == (0.0, 1.0, 0, 0)


def test_four_wins_of_four_have_p_one_eighth():
    # All signs equal: 2 of the 16 assignments.
    test = paired_test(np.zeros(4), np.ones(4), resamples=50_000)
    assert test.p_value == pytest.approx(2 / 16, abs=0.01)
    assert (test.better, test.worse) == (4, 0)


def test_a_steady_improvement_over_many_queries_is_significant():
    first = np.random.default_rng(1).random(200)
    test = paired_test(first, first + 0.05)
    assert test.difference == pytest.approx(0.05)
    assert test.p_value < 0.001


def test_swapping_the_runs_changes_the_sign_only():
    generator = np.random.default_rng(2)
    first, second = generator.random(50), generator.random(50)
    there, back = paired_test(first, second), paired_test(second, first)
    assert there.difference == -back.difference
    assert there.p_value == back.p_value
