import math

import numpy as np
import pytest

from ekphory_lab.training.reranker.examples import SOFT_LABELS, levels, relevance, soft_labels


def test_a_known_answer_is_fully_relevant_and_one_beaten_nine_to_one_is_low():
    abilities = np.array([0.0, -math.log(9)])

    assert relevance(abilities, np.array([True, False])) == pytest.approx([1.0, 0.2])


def test_what_beats_the_answer_is_no_more_than_fully_relevant():
    assert relevance(np.array([0.0, 3.0]), np.array([True, False])).tolist() == [1.0, 1.0]


def test_without_a_known_answer_the_best_one_is_the_measure():
    found = relevance(np.array([1.0, 1.0 - math.log(3)]), np.array([False, False]))

    assert found == pytest.approx([1.0, 0.5])


def test_a_bound_belongs_to_the_level_above_it():
    assert levels(np.array([0.0, 0.19, 0.2, 0.5, 0.79, 0.8, 1.0])).tolist() == [1, 1, 2, 3, 4, 5, 5]


def test_every_level_has_its_soft_label():
    assert soft_labels(np.array([5, 1])).tolist() == [SOFT_LABELS[4], SOFT_LABELS[0]]
