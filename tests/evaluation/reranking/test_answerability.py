import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory_lab.evaluation.reranking.benchmark import answerability, auroc

VALUES = st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9]), min_size=1, max_size=8)


def test_a_perfect_split_has_area_one():
    assert auroc(np.array([0.8, 0.9]), np.array([0.1, 0.7])) == 1.0


def test_equal_values_count_as_half():
    assert auroc(np.array([0.5, 0.9]), np.array([0.5, 0.5])) == 0.75


@given(VALUES, VALUES)
def test_it_is_the_share_of_pairs_in_the_right_order(positive, negative):
    pairs = [(own > other) + (own == other) / 2 for own in positive for other in negative]
    assert auroc(np.array(positive), np.array(negative)) == pytest.approx(np.mean(pairs))


def test_the_interval_holds_the_value():
    own, elsewhere = np.linspace(0.2, 1, 40), np.linspace(0, 0.8, 40)
    found = answerability(own, elsewhere)
    assert found.low < found.mean < found.high
