import numpy as np
import pytest
from tests.training.reranker.rerank_examples import candidate, example

from ekphory_lab.training.reranker.examples import development, first_stage_scores, reciprocal_rank

ASKED = example(candidate("a", relevant=True), candidate("b"), candidate("c"))


def test_the_rank_is_that_of_the_best_answer():
    two = example(candidate("a", relevant=True), candidate("b"), candidate("c", relevant=True))

    assert reciprocal_rank(two, np.array([0.1, 0.5, 0.9])) == 1.0
    assert reciprocal_rank(ASKED, np.array([0.5, 0.9, 0.1])) == 0.5


def test_equal_scores_do_not_flatter():
    assert reciprocal_rank(ASKED, np.zeros(3)) == pytest.approx(1 / 3)


def test_sources_are_reported_apart():
    other = example(candidate("a", relevant=True), candidate("b"), source="squad")

    found = development([ASKED, other], [np.array([3.0, 2, 1]), np.array([0.0, 1])], step=7)

    assert found.ranks == {"all": 0.75, "chats": 1.0, "squad": 0.5}
    assert found.with_context is None
    assert found.step == 7


def test_the_first_stage_is_the_mean_of_its_two_arms():
    asked = example(
        candidate("a", relevant=True, lexical=1.0, dense=0.0),
        candidate("b", lexical=0.0, dense=1.0),
    )

    assert first_stage_scores(asked) == pytest.approx([0, 0])
