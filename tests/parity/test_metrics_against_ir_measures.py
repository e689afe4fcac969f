"""The measures equal those of ir_measures (which runs trec_eval) on random rankings."""

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekphory_lab.evaluation.metrics import measures

CUT = {"NDCG": ("nDCG", 1, 3, 10), "R": ("R", 3, 5, 10, 20), "P": ("P", 1, 5, 10)}
THEIRS = {"MAP": "AP@100", "MRR": "RR"} | {
    f"{ours}@{depth}": f"{theirs}@{depth}"
    for ours, (theirs, *depths) in CUT.items()
    for depth in depths
}
PASSAGES = [f"p{number}" for number in range(40)]


@st.composite
def judged_rankings(draw):
    qrels = draw(
        st.dictionaries(st.sampled_from(PASSAGES), st.integers(0, 4), min_size=1, max_size=15)
    )
    length = draw(st.integers(1, 40))
    return qrels, draw(st.permutations(PASSAGES))[:length]


@settings(max_examples=100, deadline=None)
@given(judged=judged_rankings())
def test_measures_equal_those_of_ir_measures(judged):
    qrels, ranking = judged
    scores = {passage: float(-rank) for rank, passage in enumerate(ranking)}
    parsed = {ours: ir_measures.parse_measure(theirs) for ours, theirs in THEIRS.items()}
    found = ir_measures.calc_aggregate(parsed.values(), {"q": qrels}, {"q": scores})
    expected = {name: found[theirs] for name, theirs in parsed.items()}
    precise, complete = expected["P@10"], expected["R@10"]
    whole = precise + complete
    expected["F1@10"] = 2 * precise * complete / whole if whole else 0.0
    ours = {each.name: each.score(qrels, ranking) for each in measures(list(expected))}
    assert ours == pytest.approx(expected, abs=1e-6)
