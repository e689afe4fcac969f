"""Stage 5 makes one score out of the arms."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest

from ekphory.retrieval.calibration import Calibration, FusionCalibration
from ekphory.retrieval.fusion import LexicalWeight
from ekphory.retrieval.stages.find import Fuse, SearchPools
from ekphory.testing.store_contract import contract_record
from retrieval.states import records, rows, state_of, with_candidates


def test_equal_ranking_keeps_the_order_of_writing():
    state = with_candidates(state_of(*map(contract_record, (1, 2, 3))), [0.5, 0.5, 0.5])
    assert state.candidates.rows.tolist() == [0, 1, 2]


@pytest.mark.parametrize("method", ["weighted_sum", "reciprocal_rank"])
def test_the_probability_comes_from_the_weighted_sum_whatever_orders(method):
    state = SearchPools().run(state_of(contract_record(1), contract_record(2), query="memory 2"))
    fused = Fuse(method=method).run(state).candidates
    sums = fused.scores["cosine"] + np.float32(0.75) * fused.scores["lexical"]
    assert fused.scores["fused"].tolist() == pytest.approx(sums.tolist())
    assert fused.rows.tolist() == [1, 0]


def test_turns_and_documents_weigh_words_and_probabilities_each_in_their_own_way():
    fuse = Fuse(
        lexical_weight=LexicalWeight(documents=0.8, turns=0.4),
        calibration=FusionCalibration(
            documents=Calibration(slope=2.0, steepening=0.0, weight=0.0, intercept=-1.0),
            turns=Calibration(slope=4.0, steepening=0.0, weight=0.0, intercept=-1.0),
        ),
    )
    note, turn = records("the roof leaks"), records("the roof leaks", session="s1")

    found = {}
    for name, stored in (("note", note), ("turn", turn), ("both", [*note, *renamed(turn)])):
        state = with_candidates(
            state_of(*stored), [1.0], cosine=[0.5], lexical=[0.5], lexical_bound=[5.0]
        )
        scores = fuse.run(state).candidates.scores
        found[name] = float(scores["fused"][0]), float(scores["probability"][0])

    assert found["note"] == pytest.approx((0.9, 1 / (1 + exp(-0.8))))
    assert found["turn"] == pytest.approx((0.7, 1 / (1 + exp(-1.8))))
    assert found["both"] == pytest.approx((0.8, 1 / (1 + exp(-1.4))))


def test_documents_in_the_pools_for_reference_are_no_turns():
    passage = records("the roof leaks", session="handbook", pool="reference_library")
    state = with_candidates(
        state_of(*passage), [1.0], cosine=[0.5], lexical=[0.5], lexical_bound=[5.0]
    )
    fuse = Fuse(lexical_weight=LexicalWeight(documents=0.8, turns=0.4))

    assert fuse.run(state).candidates.scores["fused"].tolist() == pytest.approx([0.9])


def renamed(stored):
    return [replace(record, id=f"{record.id}b") for record in stored]


def arms(cosine, lexical):
    count = len(cosine)
    state = state_of(*records(*map(str, range(count))), k=1)
    bound = [5.0] * count
    return with_candidates(state, cosine, cosine=cosine, lexical=lexical, lexical_bound=bound)


def test_ranks_of_both_arms_add_up():
    fused = Fuse(method="reciprocal_rank").run(arms([0.9, 0.8, 0.1], [0.0, 0.7, 0.2]))
    assert rows(fused) == [1, 2, 0]
    assert fused.candidates.ranking.tolist() == pytest.approx(
        [1 / 62 + 1 / 61, 1 / 63 + 1 / 62, 1 / 61]
    )


def test_an_arms_list_ends_where_it_is_told_to():
    fused = Fuse(method="reciprocal_rank", list_per_hit=1).run(arms([0.9, 0.8], [0.1, 0.7]))
    assert fused.candidates.ranking.tolist() == pytest.approx([1 / 61, 1 / 61])


def test_where_the_arms_disagree_the_adaptive_ranks_trust_the_dense_one():
    state = arms([0.9, 0.8, 0.7], [0.0, 0.0, 0.9])
    assert rows(Fuse(method="reciprocal_rank").run(state))[0] == 2
    adaptive = Fuse(method="adaptive_reciprocal_rank", list_per_hit=2).run(state)
    assert rows(adaptive)[0] == 0
    assert adaptive.notes["arm_weights"] == (2.0, 0.3)


def test_one_arm_orders_alone():
    state = arms([0.9, 0.8], [0.1, 0.7])
    assert rows(Fuse(method="dense").run(state)) == [0, 1]
    assert rows(Fuse(method="lexical").run(state)) == [1, 0]


def test_a_method_asks_for_the_arms_that_it_fuses():
    methods = ("weighted_sum", "dense", "lexical")
    assert [sorted(Fuse(method=method).needs) for method in methods] == [
        ["cosine", "lexical"], ["cosine"], ["lexical"],
    ]  # fmt: skip
