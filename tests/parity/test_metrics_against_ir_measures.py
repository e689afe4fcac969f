"""The measures equal those of ir_measures (which runs trec_eval) on random rankings."""

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekphory_lab.evaluation.metrics import measures

THEIRS = {
    "MAP": "AP@100",
    "MRR": "RR",
    "NDCG@1": "nDCG@1",
    "NDCG@3": "nDCG@3",
    "NDCG@10": "nDCG@10",
    "R@3": "R@3",
    "R@5": "R@5",
    "R@10": "R@10",
    "R@20": "R@20",
    "P@1": "P@1",
    "P@5": "P@5",
    "P@10": "P@10",
}
PASSAGES = [f"p{number}" for number in range(40)]


@st.composite
def judged_rankings(draw):
    qrels = draw(
        st.dictionaries(st.sampled_from(PASSAGES), st.integers(0, 4), min_size=1, max_size=15)
    )
    length = draw(st.integers(1, 40))
    return qrels, draw(st.permutations(PASSAGES))[:length]


@settings(max_examples=150, deadline=None)
@given(judged=judged_rankings())
def test_measures_equal_those_of_ir_measures(judged):
    qrels, ranking = judged
    scores = {passage: float(-rank) for rank, passage in enumerate(ranking)}
    parsed = {ours: ir_measures.parse_measure(theirs) for ours, theirs in THEIRS.items()}
    expected = ir_measures.calc_aggregate(parsed.values(), {"q": qrels}, {"q": scores})
    ours = {each.name: each.score(qrels, ranking) for each in measures(list(THEIRS))}
    for name, theirs in parsed.items():
        assert ours[name] == pytest.approx(expected[theirs], abs=1e-6), name


@settings(max_examples=50, deadline=None)
@given(judged=judged_rankings())
def test_f1_is_made_of_the_precision_and_recall_of_ir_measures(judged):
    qrels, ranking = judged
    scores = {passage: float(-rank) for rank, passage in enumerate(ranking)}
    parts = [ir_measures.parse_measure("P@10"), ir_measures.parse_measure("R@10")]
    values = ir_measures.calc_aggregate(parts, {"q": qrels}, {"q": scores})
    precise, complete = (values[part] for part in parts)
    expected = 2 * precise * complete / (precise + complete) if precise + complete else 0.0
    assert measures(["F1@10"])[0].score(qrels, ranking) == pytest.approx(expected, abs=1e-6)
