import math

import numpy as np
import pytest

from ekphory_lab.training.reranker.teachers import bradley_terry


def test_three_wins_against_one_put_two_candidates_the_logarithm_of_three_apart():
    abilities = bradley_terry(np.array([[0.0, 3.0], [1.0, 0.0]]), prior=0.0)

    assert abilities == pytest.approx([math.log(3) / 2, -math.log(3) / 2], abs=1e-6)


def test_the_prior_keeps_a_candidate_that_never_loses_finite():
    abilities = bradley_terry(np.array([[0.0, 1.0], [0.0, 0.0]]), prior=0.1)

    assert abilities[0] - abilities[1] == pytest.approx(math.log(1.1 / 0.1), abs=1e-6)


def test_a_circle_of_wins_makes_all_equal():
    wins = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 2.0], [2.0, 0.0, 0.0]])

    assert bradley_terry(wins) == pytest.approx([0, 0, 0], abs=1e-9)


def test_abilities_give_back_the_chances_that_preferences_were_made_of():
    known = np.array([1.5, 0.5, -0.5, -1.5])
    wins = 1 / (1 + np.exp(known[None, :] - known[:, None]))

    assert bradley_terry(wins, prior=0.0) == pytest.approx(known, abs=1e-5)


def test_one_candidate_has_ability_nought():
    assert bradley_terry(np.zeros((1, 1))).tolist() == [0.0]
