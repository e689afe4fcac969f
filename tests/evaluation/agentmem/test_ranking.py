import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory_lab.evaluation.agentmem import rank_measures, rank_sets
from ekphory_lab.evaluation.agentmem_cases import Candidate, CaseSet, Distractor, RankingCase


class Fixed:
    """Gives the scores that a test names, case by case."""

    def __init__(self, name, *scores):
        self.name = name
        self.configuration = {}
        self.given = scores

    def scores(self, cases):
        return [np.array(each, np.float64) for each, _ in zip(self.given, cases, strict=True)]


def case(number, kinds="negation negation number"):
    distractors = [Distractor(kind, Candidate(f"no {place}")) for place, kind in
                   enumerate(kinds.split())]  # fmt: skip
    return RankingCase(str(number), "a query", Candidate("yes"), tuple(distractors))


def test_the_best_candidate_has_rank_1():
    assert rank_measures(np.array([0.9, 0.1, 0.2, 0.3])) == {
        "MRR": 1, "R@1": 1, "R@5": 1, "NDCG@10": 1
    }  # fmt: skip


def test_the_third_of_eight():
    found = rank_measures(np.array([0.5, 0.9, 0.8, 0.1, 0.1, 0.1, 0.1, 0.1]))
    assert found == pytest.approx({"MRR": 1 / 3, "R@1": 0, "R@5": 1, "NDCG@10": 0.5})


def test_equal_scores_share_their_ranks():
    found = rank_measures(np.array([0.5, 0.5, 0.1, 0.1]))
    assert (found["MRR"], found["R@1"]) == (0.75, 0.5)


def test_a_constant_scorer_reaches_what_chance_reaches():
    found = rank_measures(np.zeros(8))
    assert found["MRR"] == pytest.approx(0.3397, abs=1e-4)
    assert (found["R@1"], found["R@5"]) == (0.125, 0.625)


@given(st.permutations([0.1, 0.2, 0.3, 0.3, 0.5, 0.5, 0.6]), st.sampled_from([0.0, 0.3, 0.5, 0.7]))
def test_the_order_of_the_distractors_changes_nothing(others, answer):
    ordered = rank_measures(np.array([answer, *sorted(others)]))
    assert rank_measures(np.array([answer, *others])) == ordered


def test_a_report_tells_which_kinds_the_answer_does_not_beat():
    cases = CaseSet(name="set", cases=(case(1),), origin={})
    (report,) = rank_sets([cases], [Fixed("one", [0.5, 0.9, 0.5, 0.1])])
    assert report.outranked == {"negation": 0.75, "number": 0.0}


def test_later_scorers_are_compared_with_the_first():
    cases = CaseSet(name="set", cases=(case(1), case(2)), origin={})
    worse, better = Fixed("a", [0, 1, 1, 1], [0, 1, 1, 1]), Fixed("b", [2, 1, 1, 1], [2, 1, 1, 1])
    first, second = rank_sets([cases], [worse, better])
    assert first.against_first is None
    assert second.against_first.difference == pytest.approx(0.75)
    assert second.estimates["R@1"].mean == 1
