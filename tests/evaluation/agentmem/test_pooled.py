"""Several sets as one: every query counts the same."""

import numpy as np
import pytest

from ekphory_lab.evaluation.agentmem import pooled_rankings, pooled_set, rank_sets
from ekphory_lab.evaluation.agentmem_cases import Candidate, CaseSet, Distractor, RankingCase


class Ranks:
    """Puts the answer of every case of a set at one rank of three."""

    def __init__(self, name, rank):
        self.name = name
        self.configuration = {"read by": name}
        self.rank = rank

    def scores(self, cases):
        return [np.array([-self.rank + 0.5, -1.0, -2.0]) for _ in cases]


def sets_of(*sizes):
    others = tuple(Distractor("number", Candidate(text)) for text in ("no", "never"))
    return [
        CaseSet(
            name=f"set {size}",
            cases=tuple(
                RankingCase(str(number), "a query", Candidate("yes"), others)
                for number in range(size)
            ),
            origin={},
            missing={"number": size},
        )
        for size in sizes
    ]


def test_a_set_of_three_queries_counts_three_times_one_of_one():
    one, three = sets_of(1, 3)
    (pooled,) = pooled_rankings(
        [rank_sets([one], [Ranks("a", 1)]), rank_sets([three], [Ranks("a", 3)])]
    )
    assert pooled.set_name == "all conversations"
    assert pooled.estimates["MRR"].mean == pytest.approx((1 + 3 / 3) / 4)
    assert [outcome.case.id for outcome in pooled.outcomes] == [
        "set 1/0", "set 3/0", "set 3/1", "set 3/2"
    ]  # fmt: skip


def test_the_others_are_compared_with_the_first():
    rankings = [rank_sets([each], [Ranks("a", 2), Ranks("b", 1)]) for each in sets_of(1, 3)]
    first, second = pooled_rankings(rankings)
    assert first.against_first is None
    assert second.against_first.difference == 0.5


def test_where_no_text_has_several_windows_a_models_own_row_stands_for_all_windows():
    short, long = sets_of(1, 3)
    rankings = [
        rank_sets([short], [Ranks("a", 2), Ranks("bm25", 3)]),
        rank_sets([long], [Ranks("a", 2), Ranks("a, all windows", 1), Ranks("bm25", 3)]),
    ]
    pooled = {each.scorer: each for each in pooled_rankings(rankings)}
    assert list(pooled) == ["a", "a, all windows", "bm25"]
    assert pooled["a, all windows"].estimates["MRR"].mean == pytest.approx((1 / 2 + 3) / 4)
    assert pooled["a, all windows"].configuration == {"read by": "a, all windows"}


def test_every_system_stands_before_itself_with_all_windows():
    first, second = sets_of(1, 3)
    names = [["a", "b", "a, all windows", "bm25"], ["a", "b", "b, all windows", "bm25"]]
    rankings = [
        rank_sets([cases], [Ranks(name, 1) for name in each])
        for cases, each in zip((first, second), names, strict=True)
    ]
    assert [each.scorer for each in pooled_rankings(rankings)] == [
        "a", "a, all windows", "b", "b, all windows", "bm25"
    ]  # fmt: skip


def test_the_pooled_set_holds_every_case_and_names_its_sets():
    pooled = pooled_set(sets_of(1, 3))
    assert [case.id for case in pooled.cases] == ["set 1/0", "set 3/0", "set 3/1", "set 3/2"]
    assert pooled.origin == {"sets": "set 1, set 3"}
    assert pooled.missing == {"number": 4}
