"""The reranker gate, with the numbers and the case names of Memory-Spark's own tests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import read_cases

from ekphory.retrieval.gate import GateThresholds, gate_decision

CASES = read_cases(__file__)
PUBLISHED = GateThresholds(low=0.02, high=0.08)


@pytest.mark.parametrize(("name", "case"), CASES["decisions"])
def test_the_gate_decides_as_published(name, case):
    mode, scores, low, high, rerank, weight, reason = case
    decision = gate_decision(scores, mode=mode, thresholds=GateThresholds(low=low, high=high))
    assert decision.rerank is rerank
    assert decision.first_stage_weight == pytest.approx(weight, abs=1e-4)
    assert decision.reason.split(":")[0] == reason


@pytest.mark.parametrize(("mode", "scores", "reason"), CASES["reasons"])
def test_the_reasons_read_as_upstream_logs_them(mode, scores, reason):
    assert gate_decision(scores, mode=mode).reason == reason


def test_whole_thresholds_are_written_without_a_point():
    reason = gate_decision([2.5, 0.0], mode="hard", thresholds=GateThresholds(0.0, 1.0)).reason
    assert reason == "hard-gate-high: spread=2.5000 > 1 (vector confident)"


spreads = st.floats(0, 1, allow_nan=False)


@given(spreads)
def test_a_hard_gate_reranks_just_within_its_thresholds(spread):
    decision = gate_decision([spread, 0.0], mode="hard")
    assert decision.rerank is (PUBLISHED.low <= spread <= PUBLISHED.high)


@given(spreads)
def test_a_soft_gate_always_reranks_with_a_weight_of_a_half_to_one(spread):
    decision = gate_decision([spread, 0.0], mode="soft")
    assert decision.rerank
    assert 0.5 <= decision.first_stage_weight <= 1.0


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=5), st.randoms())
def test_the_order_of_the_nearest_five_changes_nothing(scores, random):
    shuffled = random.sample(scores, len(scores))
    assert gate_decision(scores, mode="soft") == gate_decision(shuffled, mode="soft")
