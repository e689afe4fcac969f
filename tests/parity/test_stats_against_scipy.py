"""The interval and the paired test agree with scipy's."""

import numpy as np
import pytest
from scipy import stats

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


def test_the_randomisation_test_agrees_with_the_t_test_on_normal_differences():
    generator = np.random.default_rng(5)
    first = generator.random(500)
    second = first + generator.normal(0.008, 0.1, 500)
    ours = paired_test(first, second, resamples=40_000)
    assert ours.p_value == pytest.approx(stats.ttest_rel(second, first).pvalue, abs=0.01)
