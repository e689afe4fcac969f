"""Maximal marginal relevance, computed by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ekphory.retrieval.stages.shape import adaptive_trade_off, order_by_marginal_relevance


def order(relevance, similarity, trade_off):
    return order_by_marginal_relevance(
        np.array(relevance, float), np.array(similarity, float), trade_off=trade_off
    ).tolist()


TWINS = [[1.0, 0.95, 0.1], [0.95, 1.0, 0.1], [0.1, 0.1, 1.0]]


def test_a_twin_of_the_first_comes_after_something_else():
    # At λ = .5: the twin .5·.9 - .5·.95 = -.025, the other .5·.5 - .5·.1 = .2.
    assert order([1.0, 0.9, 0.5], TWINS, 0.5) == [0, 2, 1]


def test_at_nine_tenths_relevance_outweighs_it():
    # The twin .9·.9 - .1·.95 = .715, the other .9·.5 - .1·.1 = .44.
    assert order([1.0, 0.9, 0.5], TWINS, 0.9) == [0, 1, 2]


def test_relevance_alone_keeps_the_order():
    assert order([0.9, 0.5, 0.1], TWINS, 1.0) == [0, 1, 2]


def test_the_most_relevant_comes_first_wherever_it_stands():
    assert order([0.1, 0.9], [[1, 0], [0, 1]], 0.9) == [1, 0]


def test_pointing_away_is_rewarded():
    # 1 points away from 0, 2 is at a right angle: .5·.5 + .5·.4 = .45 against .5·.6 - 0 = .3.
    similarity = [[1.0, -0.4, 0.0], [-0.4, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert order([1.0, 0.5, 0.6], similarity, 0.5) == [0, 1, 2]


def test_one_and_none_are_as_they_were():
    assert order([0.5], [[1.0]], 0.9) == [0]
    assert order([], np.empty((0, 0)), 0.9) == []


def test_equal_candidates_keep_their_order():
    assert order([0.5, 0.5, 0.5], np.eye(3), 0.9) == [0, 1, 2]


@pytest.mark.parametrize(
    ("scores", "trade_off"),
    [
        ([0.9, 0.5], 0.95),
        ([0.9, 0.6], 0.95),
        ([0.75, 0.5], 0.85),
        ([0.75, 0.6875], 0.7),
        ([0.9], 0.9),
        ([], 0.9),
    ],
)
def test_the_trade_off_follows_the_spread(scores, trade_off):
    assert adaptive_trade_off(np.array(scores)) == trade_off


@given(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(
            arrays(float, n, elements=st.floats(0, 1)),
            arrays(float, (n, 4), elements=st.floats(-1, 1)),
        )
    ),
    st.floats(0, 1),
)
def test_nothing_is_lost_and_nothing_comes_twice(relevance_and_vectors, trade_off):
    relevance, vectors = relevance_and_vectors
    found = order_by_marginal_relevance(relevance, vectors @ vectors.T, trade_off=trade_off)
    assert sorted(found.tolist()) == list(range(len(relevance)))
    assert relevance[found[0]] == pytest.approx(relevance.max()) or trade_off < 1
