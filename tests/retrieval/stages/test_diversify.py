"""Stage 13 lets something else come before a repetition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.retrieval.stages.shape import Diversify
from retrieval.states import records, rows, state_of, with_candidates

TEXTS = ("red red red dog", "red red red dog", "a green ladder", "a red dog")


def state(ranking, k=10):
    cosine = [0.9, 0.85, 0.5, 0.4][: len(ranking)]
    return with_candidates(state_of(*records(*TEXTS[: len(ranking)]), k=k), ranking, cosine=cosine)


def test_a_repetition_comes_after_something_else():
    diverse = Diversify(trade_off=0.3).run(state([0.9, 0.89, 0.5]))
    assert rows(diverse) == [0, 2, 1]


def test_only_the_order_changes():
    before = state([0.9, 0.89, 0.5])
    after = Diversify(trade_off=0.3).run(before).candidates
    assert after.scores["probability"].tolist() == pytest.approx([0.9, 0.5, 0.89])
    assert after.ranking.tolist() == before.candidates.ranking.tolist()


def test_only_the_best_are_ordered():
    diverse = Diversify(trade_off=0.0, among_per_hit=2).run(state([0.9, 0.8, 0.7, 0.6], k=1))
    assert rows(diverse)[2:] == [2, 3]


def test_the_trade_off_can_follow_the_spread_of_cosine():
    assert Diversify(trade_off="adaptive").run(state([0.9, 0.89, 0.5])).notes["trade_off"] == 0.95


@given(st.floats(0.001, 1000), st.floats(0, 1))
def test_the_scale_of_the_ranking_does_not_matter(factor, trade_off):
    ranking = np.array([0.9, 0.89, 0.5, 0.1])
    stage = Diversify(trade_off=trade_off)
    plain, scaled = (rows(stage.run(state(each))) for each in (ranking, ranking * factor))
    assert plain == scaled
    assert sorted(plain) == [0, 1, 2, 3]
