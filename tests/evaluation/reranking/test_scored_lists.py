"""The order that a reranker's scores make, and the probabilities they stand for."""

import numpy as np
import pytest

from ekphory.models.reranker import RerankQuery
from ekphory.testing.models import OverlapReranker
from ekphory_lab.evaluation.reranking.candidates import CandidateList
from ekphory_lab.evaluation.reranking.contenders import (
    BM25,
    FIRST_STAGE_ALONE,
    Contender,
    Judge,
    ScoredList,
    model_contender,
)

NOT_READ = float("nan")


def scored(*scores, ranking=(0.9, 0.5, 0.1)):
    found = CandidateList(
        ("a", "0"), "a", RerankQuery("?"), ("x", "y", "z"), {"ranking": tuple(ranking)}
    )
    return ScoredList(found, np.array(scores), np.zeros(3))


def test_the_reranker_alone_decides():
    assert scored(0.1, 0.2, 0.3).order().tolist() == [2, 1, 0]


def test_equal_scores_keep_the_order_of_the_first_stage():
    assert scored(0.2, 0.3, 0.2).order().tolist() == [1, 0, 2]


def test_a_share_of_the_first_stage_is_added():
    found = scored(0.4, 0.5, 0.6, ranking=(0.9, 0.89, 0.1))
    assert found.order(first_stage_share=0.6).tolist() == [1, 0, 2]


def test_what_was_not_read_follows_in_its_order():
    assert scored(0.1, 0.2, NOT_READ).order().tolist() == [1, 0, 2]


def test_without_a_reranker_order_and_probability_are_those_of_the_first_stage(dataset, candidates):
    judge = Judge(FIRST_STAGE_ALONE, candidates, dataset.pools)
    boat = judge.score(candidates.own[1])
    assert boat.order().tolist() == [0, 1, 2]
    assert boat.probabilities.tolist() == list(boat.found.scores["probability"])
    assert judge.is_calibrated


def test_scores_that_nobody_calibrated_are_taken_as_they_come(dataset, candidates):
    judge = Judge(model_contender(OverlapReranker()), candidates, dataset.pools)
    boat = judge.score(candidates.own[1], most=2)
    # Of "What happened to the boat?" the turn about the boat shares "boat" and "the".
    assert boat.probabilities[0] == pytest.approx(2 / 5)
    assert np.isnan(boat.scores).tolist() == [False, False, True]
    assert not judge.is_calibrated


def test_the_reranker_of_a_pool_is_made_once(dataset, candidates):
    made = []

    def make(texts):
        made.append(texts[0])
        return OverlapReranker()

    judge = Judge(Contender(BM25, make), candidates, dataset.pools)
    for found in candidates.own:
        judge.score(found)
    assert made == ["Ann: I adopted a grey cat", "Cid: I moved to Lisbon"]
