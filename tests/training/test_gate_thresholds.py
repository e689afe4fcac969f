import numpy as np
import pytest

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.reranking.benchmark import GATE_FEATURES, GateCases
from ekphory_lab.training.gates import learn_gates, learn_thresholds


def cases(gains, values, pools=None):
    """Questions of one feature that matters; the others say nothing."""
    features = {name: np.zeros(len(values)) for name in GATE_FEATURES}
    features["probability_gap"] = np.array(values)
    given = pools or [str(place % 4) for place in range(len(values))]
    first_stage = np.full(len(values), 0.5)
    return GateCases(np.array(given), features, first_stage, first_stage + np.array(gains))


VALUES = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 20)
GAINS = np.where(VALUES == 0.3, 0.2, 0.0)


def test_the_band_in_which_reranking_gains_is_found():
    found = learn_thresholds(cases(GAINS, VALUES), "probability_gap")
    assert found.low == pytest.approx(0.3, abs=0.05)
    assert found.high == 0.3


def test_what_lies_beyond_everything_seen_is_treated_as_the_nearest():
    found = learn_thresholds(cases(np.full(100, 0.1), VALUES), "probability_gap", keep=1.0)
    assert (found.low, found.high) == (0.0, 2.0)


def test_the_feature_that_skips_most_comes_first():
    best, *others = learn_gates(cases(GAINS, VALUES))
    assert best.feature == "probability_gap"
    assert best.checked.skipped == pytest.approx(0.8)
    assert best.checked.gain_kept == pytest.approx(1.0)
    assert [gate.checked.skipped for gate in others] == [0.0, 0.0, 0.0]


def test_a_reranker_that_gains_nothing_is_refused():
    with pytest.raises(DatasetError, match=r"from 0\.500 to 0\.400"):
        learn_gates(cases(np.full(100, -0.1), VALUES))


def test_one_conversation_is_not_enough():
    with pytest.raises(DatasetError, match="two conversations"):
        learn_gates(cases(GAINS, VALUES, pools=["a"] * 100))
