"""The reranker gate, with the numbers and the case names of Memory-Spark's own tests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.retrieval.gate import GateThresholds, gate_decision

PUBLISHED = GateThresholds(low=0.02, high=0.08)
SCIFACT = [0.277, 0.236, 0.229, 0.227, 0.226, 0.22, 0.215, 0.21, 0.205, 0.2]
CLEAR = [0.75, 0.55, 0.4, 0.35, 0.3]
TIED = [0.255, 0.253, 0.251, 0.249, 0.247]
USEFUL = [0.35, 0.32, 0.3, 0.29, 0.28]

REASONS = {
    "off": "gate-off",
    "high": "hard-gate-high",
    "low": "hard-gate-low",
    "pass": "hard-gate-pass",
    "soft": "soft-gate",
}
# Case: mode, scores, low, high, whether it reranks, weight, kind of reason.
CASES = {
    "off always true: wide": ("off", [0.65, 0.4], 0.02, 0.08, True, 1.0, "off"),
    "off without candidates": ("off", [], 0.02, 0.08, True, 1.0, "off"),
    "hard high": ("hard", [0.6, 0.55, 0.5, 0.48, 0.45], 0.02, 0.08, False, 1.0, "high"),
    "hard low": ("hard", [0.251, 0.25, 0.249, 0.248, 0.247], 0.02, 0.08, False, 1.0, "low"),
    "hard pass": ("hard", USEFUL, 0.02, 0.08, True, 1.0, "pass"),
    "hard float near the threshold": ("hard", [0.38, 0.30], 0.02, 0.08, False, 1.0, "high"),
    "hard clearly below the threshold": ("hard", [0.375, 0.3], 0.02, 0.08, True, 1.0, "pass"),
    "hard exactly at the high threshold": ("hard", [0.75, 0.5], 0.02, 0.25, True, 1.0, "pass"),
    "hard exactly at the low threshold": ("hard", [0.75, 0.5], 0.25, 0.5, True, 1.0, "pass"),
    "hard fewer than five": ("hard", [0.5, 0.3], 0.02, 0.08, False, 1.0, "high"),
    "hard single": ("hard", [0.5], 0.02, 0.08, True, 1.0, "off"),
    "hard none": ("hard", [], 0.02, 0.08, True, 1.0, "off"),
    "hard looks at five only": ("hard", [*USEFUL, 0.0], 0.02, 0.08, True, 1.0, "pass"),
    "hard in any order": ("hard", [0.28, 0.35, 0.3], 0.02, 0.08, True, 1.0, "pass"),
    "hard keeps a tied set": ("hard", TIED, 0.02, 0.08, False, 1.0, "low"),
    "hard keeps a clear winner": ("hard", CLEAR, 0.02, 0.08, False, 1.0, "high"),
    "hard SciFact query 1": ("hard", SCIFACT, 0.02, 0.08, True, 1.0, "pass"),
    "hard SciFact query 1, stricter": ("hard", SCIFACT, 0.02, 0.06, True, 1.0, "pass"),
    "hard SciFact query 1, strictest": ("hard", SCIFACT, 0.02, 0.05, False, 1.0, "high"),
    "conditional at .15": ("hard", [0.6, 0.5], 0.0, 0.15, True, 1.0, "pass"),
    "conditional beyond .15": ("hard", [0.7, 0.5], 0.0, 0.15, False, 1.0, "high"),
    "soft above the threshold": ("soft", [0.6, 0.5], 0.02, 0.08, True, 1.0, "soft"),
    "soft at the threshold": ("soft", [0.5, 0.25], 0.02, 0.25, True, 1.0, "soft"),
    "soft in the middle": ("soft", [0.35, 0.32, 0.3], 0.02, 0.08, True, 0.75, "soft"),
    "soft just above the low threshold": ("soft", [0.3201, 0.3], 0.02, 0.08, True, 0.5008, "soft"),
    "soft at the low threshold": ("soft", [0.75, 0.5], 0.25, 0.5, True, 0.8, "soft"),
    "soft ramps up below it": ("soft", [0.301, 0.3], 0.02, 0.08, True, 0.99, "soft"),
    "soft near-tie": ("soft", [0.5, 0.495], 0.02, 0.08, True, 0.95, "soft"),
    "soft exact tie": ("soft", [0.5, 0.5], 0.02, 0.08, True, 1.0, "soft"),
    "soft wider window": ("soft", [0.4, 0.32], 0.02, 0.12, True, 0.8, "soft"),
    "soft single": ("soft", [0.5], 0.02, 0.08, True, 1.0, "off"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_gate_decides_as_published(case):
    mode, scores, low, high, rerank, weight, reason = case
    decision = gate_decision(scores, mode=mode, thresholds=GateThresholds(low=low, high=high))
    assert decision.rerank is rerank
    assert decision.first_stage_weight == pytest.approx(weight, abs=1e-4)
    assert decision.reason.split(":")[0] == REASONS[reason]


@pytest.mark.parametrize(
    ("mode", "scores", "reason"),
    [
        ("hard", [0.6, 0.45], "hard-gate-high: spread=0.1500 > 0.08 (vector confident)"),
        ("hard", [0.251, 0.247], "hard-gate-low: spread=0.0040 < 0.02 (tied set)"),
        ("hard", [0.35, 0.28], "hard-gate-pass: spread=0.0700 in [0.02, 0.08]"),
        # Half a last digit is rounded up, as in JavaScript.
        ("hard", [0.53125, 0.5], "hard-gate-pass: spread=0.0313 in [0.02, 0.08]"),
        ("soft", [0.35, 0.32, 0.3], "soft-gate: spread=0.0500 → vectorMultiplier=0.750"),
        ("off", [0.5, 0.4, 0.3], "gate-off"),
    ],
)
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
