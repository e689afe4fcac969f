import numpy as np
import pytest

from ekphory_lab.training.reranker.teachers import agreements, cohen_kappa, kendall_tau_b


def pairs(*values):
    return np.array(values, np.int64)


def test_tau_is_agreements_less_disagreements_over_what_both_decide():
    assert kendall_tau_b(pairs(1, 1, 1, 0), pairs(1, 1, -1, 1)) == pytest.approx(1 / np.sqrt(3 * 4))
    # A teacher that decides nothing has none.
    assert kendall_tau_b(pairs(0, 0), pairs(1, -1)) is None


def test_kappa_is_the_agreement_beyond_chance():
    # Observed 3/4; by chance 1/2 · 3/4 + 1/2 · 1/4 = 1/2.
    assert cohen_kappa(pairs(1, 1, -1, -1), pairs(1, 1, 1, -1)) == pytest.approx(0.5)
    # It is undefined where both always say the same.
    assert cohen_kappa(pairs(1, 1), pairs(1, 1)) is None


def test_every_two_teachers_are_compared():
    preferences = {name: [np.array([[0.5, 0.9], [0.1, 0.5]])] for name in ("a", "b", "c")}

    found = agreements(preferences)

    assert [(each.first, each.second) for each in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [each.kendall for each in found] == [1.0, 1.0, 1.0]
