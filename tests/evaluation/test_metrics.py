import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.errors import InvalidInput
from ekphory_lab.evaluation.metrics import (
    CONVERSATION_MEASURES,
    MULTIHOP_MEASURES,
    all_gold,
    average_precision,
    f1,
    measure,
    measures,
    ndcg,
    precision,
    recall,
    reciprocal_rank,
)

QRELS = {"a": 1, "b": 1, "z": 1, "not": 0}
RANKING = ["x", "a", "not", "b"]


def test_average_precision_divides_by_all_relevant_passages():
    assert average_precision(QRELS, RANKING) == pytest.approx((1 / 2 + 2 / 4) / 3)


def test_reciprocal_rank_looks_at_the_first_relevant_passage_only():
    assert reciprocal_rank(QRELS, RANKING) == 1 / 2


def test_ndcg_takes_the_gain_as_it_is():
    qrels = {"a": 3, "b": 1}
    found = 1 / math.log2(2) + 3 / math.log2(3)
    ideal = 3 / math.log2(2) + 1 / math.log2(3)
    assert ndcg(qrels, ["b", "a"], cutoff=10) == pytest.approx(found / ideal)


def test_ndcg_ideal_is_cut_as_well():
    assert ndcg({"a": 1, "b": 1}, ["a"], cutoff=1) == 1.0


def test_recall_counts_what_is_above_the_cutoff():
    assert recall(QRELS, RANKING, cutoff=2) == pytest.approx(1 / 3)


def test_precision_of_a_short_ranking_is_divided_by_the_cutoff():
    assert precision(QRELS, RANKING, cutoff=10) == 2 / 10


def test_f1_is_the_harmonic_mean_of_precision_and_recall():
    assert f1(QRELS, RANKING, cutoff=4) == pytest.approx(2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3))


def test_all_gold_needs_every_relevant_passage():
    assert all_gold({"a": 1, "b": 1}, RANKING, cutoff=4) == 1.0
    assert all_gold({"a": 1, "b": 1}, RANKING, cutoff=3) == 0.0


def test_a_passage_judged_zero_is_not_relevant():
    assert average_precision({"not": 0}, ["not"]) == 0.0


@pytest.mark.parametrize("each", CONVERSATION_MEASURES + MULTIHOP_MEASURES, ids=lambda m: m.name)
def test_an_empty_ranking_scores_zero_in_every_measure(each):
    assert each.score({"a": 1}, []) == 0.0


@given(
    qrels=st.dictionaries(st.integers(0, 30).map(str), st.integers(0, 3), max_size=10),
    ranking=st.permutations([str(number) for number in range(30)]),
)
def test_every_measure_lies_between_zero_and_one(qrels, ranking):
    for each in CONVERSATION_MEASURES + MULTIHOP_MEASURES:
        assert 0.0 <= each.score(qrels, ranking) <= 1.0, each.name


@pytest.mark.parametrize("name", ["MAP@", "R@0", "recall", "NDCG", "MAP@10", ""])
def test_an_unknown_measure_is_refused_by_name(name):
    with pytest.raises(InvalidInput, match="there is no such measure"):
        measure(name)


def test_a_measure_named_twice_is_taken_once():
    assert [each.name for each in measures(["MAP", "R@5", "MAP"])] == ["MAP", "R@5"]
