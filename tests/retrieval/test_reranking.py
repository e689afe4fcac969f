"""Passages go to the reranker in batches of like lengths, as many as the time suffices for."""

import time

import numpy as np
import pytest

from ekphory.errors import ModelError
from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory.retrieval.rerank import score_relevance
from ekphory.testing.models import OverlapReranker


class Slow(OverlapReranker):
    """Takes a while for each batch, and remembers the batches."""

    def __init__(self, *, batch_size, seconds=0.0):
        super().__init__(batch_size=batch_size)
        self.seconds = seconds
        self.batches = []

    def score(self, query, passages):
        self.batches.append([passage.text for passage in passages])
        time.sleep(self.seconds)
        return super().score(query, passages)


def read(reranker, question, texts, *, seconds):
    passages = [RerankPassage(text) for text in texts]
    return score_relevance(reranker, RerankQuery(question), passages, seconds=seconds)


def test_every_passage_gets_its_own_score_in_the_order_given():
    scores = read(OverlapReranker(), "red dog", ["a dog", "a cat", "red dog"], seconds=None)
    assert scores.tolist() == [0.5, 0.0, 1.0]


class Gives(OverlapReranker):
    def __init__(self, scores):
        super().__init__()
        self.given = np.array(scores)

    def score(self, _query, _passages):
        return self.given


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        (["a", "b"], "gave no list of numbers"),
        ([9.0, 3.0], r"gave the score 9. `score` gives numbers from 0 to 1: bring logits there"),
        ([0.5, np.nan], "gave the score nan"),
        ([-0.1, 0.5], "gave the score -0.1"),
        ([0.5], r"gave scores of shape \(1,\) for 2 passages"),
        ([[0.5], [0.5]], r"gave scores of shape \(2, 1\) for 2 passages"),
    ],
)
def test_a_reranker_that_gives_something_else_is_told_what_it_gave(scores, problem):
    with pytest.raises(ModelError, match=problem):
        read(Gives(scores), "dog", ["a dog", "a cat"], seconds=None)


def test_passages_of_like_lengths_go_together():
    reranker = Slow(batch_size=2)
    read(reranker, "x", ["aaaa", "b", "cccccc", "dd"], seconds=None)
    assert reranker.batches == [["b", "dd"], ["aaaa", "cccccc"]]


def test_the_likeliest_are_read_first_where_time_is_short():
    reranker = Slow(batch_size=2, seconds=0.05)
    scores = read(reranker, "dog", ["dog", "cat", "dog", "dog"], seconds=0.01)
    assert scores.tolist() == pytest.approx([1.0, 0.0, np.nan, np.nan], nan_ok=True)
    assert len(reranker.batches) == 1


def test_with_time_enough_all_are_read():
    scores = read(OverlapReranker(batch_size=2), "dog", ["dog"] * 7, seconds=30)
    assert scores.tolist() == [1.0] * 7


def test_as_many_are_read_as_the_first_batch_lets_hope():
    reranker = Slow(batch_size=1, seconds=0.05)
    scores = read(reranker, "dog", ["dog"] * 50, seconds=0.18)
    assert 1 <= np.isfinite(scores).sum() <= 4
    assert np.isfinite(scores[: len(reranker.batches)]).all()


def test_nothing_is_asked_of_no_passages():
    reranker = Slow(batch_size=2)
    assert read(reranker, "dog", [], seconds=None).tolist() == []
    assert reranker.batches == []
