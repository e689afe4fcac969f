"""Fusion, computed by hand."""

import numpy as np
import pytest

from recollect.retrieval.fusion import reciprocal_rank, weighted_sum


def scores(*values):
    return np.array(values, np.float32)


def test_the_weighted_sum_adds_the_weighted_lexical_share():
    fused = weighted_sum(scores(0.5, -0.25), scores(0.2, 1.0), lexical_weight=1.5)
    assert fused.tolist() == pytest.approx([0.8, 1.25])


def test_the_lexical_weight_can_be_chosen():
    assert weighted_sum(scores(0.5), scores(0.2), lexical_weight=2.0).tolist() == pytest.approx(
        [0.9]
    )


def test_the_reciprocal_ranks_of_both_arms_add_up():
    # Ranks: first arm 1, 2, 3; second arm 3, 1, 2.
    fused = reciprocal_rank(scores(9, 5, 1), scores(0.1, 0.9, 0.5))
    assert fused.tolist() == pytest.approx([1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62])


def test_what_an_arm_did_not_find_gets_nothing_from_it():
    fused = reciprocal_rank(scores(2, 1), scores(np.nan, 7))
    assert fused.tolist() == pytest.approx([1 / 61, 1 / 62 + 1 / 61])


def test_equal_scores_are_ranked_in_the_given_order():
    assert reciprocal_rank(scores(4, 4)).tolist() == pytest.approx([1 / 61, 1 / 62])


def test_the_constant_of_the_ranks_can_be_chosen():
    assert reciprocal_rank(scores(4), constant=0).tolist() == pytest.approx([1.0])
