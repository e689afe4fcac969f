"""Fusion, computed by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ekphory.retrieval import fusion


def scores(*values):
    return np.array(values, np.float32)


def test_the_weighted_sum_adds_the_weighted_lexical_share():
    # The weighted sum adds the weighted lexical share.
    fused = fusion.weighted_sum(scores(0.5, -0.25), scores(0.2, 1.0), lexical_weight=1.5)
    assert fused.tolist() == pytest.approx([0.8, 1.25])
    # The lexical weight follows the share of turns.
    weight = fusion.LexicalWeight(documents=0.75, turns=0.25)

    assert [weight.among(share) for share in (0.0, 0.5, 1.0)] == [0.75, 0.5, 0.25]
    assert weight.times(2) == fusion.LexicalWeight(documents=1.5, turns=0.5)
    # An arms list can end early.
    assert fusion.first_found(scores(0.1, 0.9, 0.5), 2).tolist() == pytest.approx(
        [np.nan, 0.9, 0.5], nan_ok=True
    )
    assert fusion.first_found(scores(0.1), None).tolist() == pytest.approx([0.1])
    # Without a dense finding the dense arm is trusted.
    assert fusion.adaptive_weights(scores(np.nan), scores(1)) == (2.0, 0.3)


@pytest.mark.parametrize(
    ("arms", "weights", "expected"),
    [
        # Ranks: first arm 1, 2, 3; second arm 3, 1, 2.
        ([(9, 5, 1), (0.1, 0.9, 0.5)], {}, [1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62]),
        # What an arm did not find gets nothing from it.
        ([(2, 1), (np.nan, 7)], {}, [1 / 61, 1 / 62 + 1 / 61]),
        ([(4, 4)], {}, [1 / 61, 1 / 62]),
        ([(2, 1), (1, 2)], {"weights": (2.0, 0.3)}, [2 / 61 + 0.3 / 62, 2 / 62 + 0.3 / 61]),
    ],
)
def test_the_reciprocal_ranks_of_all_arms_add_up(arms, weights, expected):
    fused = fusion.reciprocal_rank(*(scores(*arm) for arm in arms), **weights)
    assert fused.tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("found_by_words", "weights"),
    [(7, (1.0, 1.0)), (6, (1.5, 0.5)), (4, (1.5, 0.5)), (3, (2.0, 0.3)), (0, (2.0, 0.3))],
)
def test_the_fewer_of_the_nearest_ten_words_find_the_less_they_count(found_by_words, weights):
    dense = scores(*range(20, 0, -1))
    lexical = scores(*[1.0] * found_by_words, *[np.nan] * (20 - found_by_words))
    assert fusion.adaptive_weights(dense, lexical) == weights


columns = arrays(
    np.float32, 12, elements=st.floats(0, 1, width=32, allow_subnormal=False), unique=True
)


@given(columns, columns, st.permutations(range(12)))
def test_fusion_does_not_depend_on_the_order_of_the_rows(dense, lexical, places):
    shuffled = fusion.reciprocal_rank(dense[places], lexical[places])
    assert shuffled.tolist() == fusion.reciprocal_rank(dense, lexical)[places].tolist()


@given(columns, columns)
def test_a_row_that_both_arms_rank_higher_is_fused_higher(dense, lexical):
    fused = fusion.reciprocal_rank(dense, lexical)
    above = (dense[:, None] > dense) & (lexical[:, None] > lexical)
    assert (fused[:, None] > fused)[above].all()


@given(columns, st.sampled_from([0.25, 2.0, 1024.0]))
def test_ranks_do_not_depend_on_an_arms_scale(dense, factor):
    scaled = dense * np.float32(factor)
    assert fusion.reciprocal_rank(dense).tolist() == fusion.reciprocal_rank(scaled).tolist()
