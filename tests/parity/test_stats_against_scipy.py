"""The interval, the paired test and the correlation agree with scipy's."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from ekphory_lab.evaluation.agentmem import spearman
from ekphory_lab.evaluation.metrics import bootstrap_intervals, paired_test


def test_the_bootstrap_interval_is_that_of_scipy():
    scores = np.random.default_rng(1).beta(0.5, 0.5, 300)
    ours = bootstrap_intervals(scores[:, np.newaxis], resamples=20_000)[0]
    theirs = stats.bootstrap(
        (scores,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert ours.low == pytest.approx(theirs.low, abs=2e-3)
    assert ours.high == pytest.approx(theirs.high, abs=2e-3)


def test_the_randomisation_test_is_that_of_scipy():
    generator = np.random.default_rng(3)
    first = generator.random(40)
    second = first + generator.normal(0.03, 0.1, 40)
    ours = paired_test(first, second, resamples=40_000)
    theirs = stats.permutation_test(
        (second, first),
        lambda one, other, axis: np.mean(one - other, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=40_000,
        rng=np.random.default_rng(4),
    )
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=0.01)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=20))
def test_spearman_agrees_with_scipy_where_both_vary(values):
    first, second = (np.array(side, np.float64) for side in zip(*values, strict=True))
    assume(len(set(first)) > 1 and len(set(second)) > 1)
    assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic)
