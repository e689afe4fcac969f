import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from ekphory_lab.evaluation.agentmem import spearman

pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=20)


@given(pairs)
def test_spearman_agrees_with_scipy_where_both_vary(values):
    first, second = (np.array(side, np.float64) for side in zip(*values, strict=True))
    assume(len(set(first)) > 1 and len(set(second)) > 1)
    assert spearman(first, second) == pytest.approx(spearmanr(first, second).statistic)
