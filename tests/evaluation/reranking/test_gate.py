import numpy as np
import pytest

from ekphory.retrieval.gate import GateThresholds, gate_feature
from ekphory.testing.models import OverlapReranker
from ekphory_lab.evaluation.reranking.benchmark import GateCases, gate_cases, gate_outcome, passes
from ekphory_lab.evaluation.reranking.contenders import Judge, model_contender

SCORES = {
    "cosine": np.array([0.3, 0.9, 0.8, 0.7, 0.6, 0.5]),
    "probability": np.array([0.1, 0.6, 0.2]),
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cosine_spread", 0.4),
        ("probability_spread", 0.5),
        ("probability_gap", 0.4),
        ("best_probability", 0.6),
    ],
)
def test_a_feature_is_taken_from_the_largest_scores(name, expected):
    assert gate_feature(name, SCORES) == pytest.approx(expected)


def test_without_candidates_a_feature_is_zero():
    assert gate_feature("probability_gap", {"probability": np.empty(0)}) == 0.0


def test_a_gate_keeps_the_gain_of_what_it_reranks():
    cases = GateCases(
        pools=np.array(["a", "a", "b", "b"]),
        features={"best_probability": np.array([0.1, 0.5, 0.6, 0.9])},
        first_stage=np.array([0.2, 0.2, 0.5, 1.0]),
        reranked=np.array([0.2, 0.6, 0.7, 0.9]),
    )
    reranked = passes(cases, "best_probability", GateThresholds(0.5, 0.6))
    outcome = gate_outcome(cases, reranked)
    assert reranked.tolist() == [False, True, True, False]
    assert outcome.skipped == 0.5
    assert outcome.gain_kept == pytest.approx(0.6 / 0.5)
    assert (outcome.first_stage, outcome.always) == (pytest.approx(0.475), pytest.approx(0.6))
    assert outcome.gated == pytest.approx(0.625)


def test_every_question_becomes_a_case(dataset, candidates):
    judge = Judge(model_contender(OverlapReranker()), candidates, dataset.pools)
    cases = gate_cases(dataset, judge, read=2)
    assert cases.pools.tolist() == ["a", "a", "b"]
    assert cases.first_stage[1] == 1.0
    assert set(cases.features) == {
        "cosine_spread",
        "probability_spread",
        "probability_gap",
        "best_probability",
    }
