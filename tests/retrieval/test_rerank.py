"""Reranker and first stage put together, computed by hand."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.errors import ModelError
from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory.retrieval.fusion import (
    Blend,
    blended_ranks,
    blended_scores,
    is_undecided,
    min_max,
    reranked,
)
from ekphory.retrieval.stages.rerank import as_question, score_relevance
from ekphory.testing import OverlapReranker


def values(*numbers):
    return np.array(numbers, np.float64)


def test_ranks_from_one_add_up_whatever_the_scale():
    # The reranker ranks the first stage's 1, 2, 3 as 3, 1, 2.
    blended = blended_ranks(values(0.1, 0.9, 0.5)).tolist()
    assert blended == pytest.approx([1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62])
    assert blended_ranks(values(0.83, 0.99, 0.84)).tolist() == blended
    small = blended_ranks(values(0.1, 0.9), constant=1).tolist()
    assert small == pytest.approx([1 / 2 + 1 / 3, 1 / 3 + 1 / 2])
    assert blended_ranks(values(0.5, 0.5, 0.5)).argsort()[::-1].tolist() == [0, 1, 2]
    assert blended_ranks(values()).tolist() == []


def test_the_heavier_side_decides_about_the_best():
    # The heavier side decides.
    by_reranker = blended_ranks(values(0.1, 0.9), reranker_weight=10)
    by_first_stage = blended_ranks(values(0.1, 0.9), first_stage_weight=10)
    assert (by_reranker.argmax(), by_first_stage.argmax()) == (1, 0)
    # Logits 3.48, -1.39 and -16.1: the reranker's second is far closer to its first than the third.
    first_stage, reranker = values(2, 3, 1), values(0.97, 0.2, 0.0)
    plain = blended_scores(first_stage, reranker, first_stage_share=0.5)
    bounded = blended_scores(first_stage, reranker, first_stage_share=0.5, most_spread=5.0)
    assert (plain.argmax(), bounded.argmax()) == (1, 0)
    assert bounded.tolist() == pytest.approx([0.75, 0.5 + 0.5 * 0.0274, 0.0], abs=1e-3)


def test_scores_are_scaled_and_added():
    # Logits of .2, .5, .8 are -1.386, 0, 1.386: scaled 0, .5, 1.
    blended = blended_scores(values(3, 2, 1), values(0.2, 0.5, 0.8), first_stage_share=0.4)
    assert blended.tolist() == pytest.approx([0.4 * 1 + 0, 0.4 * 0.5 + 0.6 * 0.5, 0.6 * 1])
    alone = blended_scores(values(3, 2), values(0.2, 0.8), first_stage_share=0.0)
    assert alone.tolist() == [0.0, 1.0]
    assert blended_scores(values(), values(), first_stage_share=0.5).tolist() == []


def test_scores_within_half_a_logit_are_undecided():
    # Equal values scale to a half.
    assert min_max(values(7, 7)).tolist() == [0.5, 0.5]
    # Logits .847 and 1.299 lie .45 apart; .847 and 1.386 lie .54 apart.
    assert is_undecided(values(0.70, 0.7857), least_spread=0.5)
    assert not is_undecided(values(0.70, 0.80), least_spread=0.5)
    assert not is_undecided(values(0.70), least_spread=0.5)


@pytest.mark.parametrize(
    ("query", "question"),
    [
        ("Zinc cures colds.", "Is it true that zinc cures colds?"),
        ("Where is Anna", "Where is Anna"),
        ("capital of France?", "capital of France?"),
        ("capital of France? ", "capital of France? "),
        ("does it rain", "does it rain"),
        ("isotopes decay", "Is it true that isotopes decay?"),
        ("  ", "  "),
    ],
)
def test_a_statement_becomes_a_question(query, question):
    assert as_question(query) == question


def test_what_was_not_read_follows_in_its_order_and_gate_and_boost_weigh():
    # What was not read follows in its order.
    ranking = reranked(values(5, 4, 3, 2), values(0.1, np.nan, 0.9, np.nan), Blend(method="scores"))
    assert (-ranking).argsort().tolist() == [2, 0, 1, 3]
    # The gate weighs the first stage.
    first_stage, reranker = values(3, 2), values(0.1, 0.9)
    plain = reranked(first_stage, reranker, Blend())
    gated = reranked(first_stage, reranker, Blend(), gate_weight=0.5)
    assert plain.tolist() == pytest.approx([1 / 61 + 1 / 62, 1 / 62 + 1 / 61])
    assert gated.tolist() == pytest.approx([0.5 / 61 + 1 / 62, 0.5 / 62 + 1 / 61])
    # A boost multiplies the blended score.
    boosted = reranked(values(2, 1), values(0.9, 0.8), Blend(), boost=values(0.9, 1.1))
    assert boosted.tolist() == pytest.approx([0.9 * 2 / 61, 1.1 * 2 / 62])


scores = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(scores, st.sampled_from([Blend(), Blend(method="scores", first_stage_share=0.3)]))
def test_a_blend_is_finite_and_agreement_keeps_the_order(given_scores, blend):
    ordered = np.sort(np.array(given_scores))[::-1]
    ranking = reranked(ordered, ordered, blend)
    assert np.isfinite(ranking).all()
    assert (np.diff(ranking) <= 1e-12).all()


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


def test_passages_of_like_lengths_go_together_and_scores_come_in_the_order_given():
    reranker = Slow(batch_size=2)
    found = read(reranker, "dog", ["dog cats", "dog", "hen cats pig", "cat"], seconds=None)
    assert found.tolist() == [1.0, 1.0, 0.0, 0.0]
    assert reranker.batches == [["dog", "cat"], ["dog cats", "hen cats pig"]]
    assert read(reranker, "dog", [], seconds=None).tolist() == []
    assert len(reranker.batches) == 2
    assert read(reranker, "dog", ["dog"] * 7, seconds=30).tolist() == [1.0] * 7


def test_the_likeliest_are_read_first_where_time_is_short():
    reranker = Slow(batch_size=2, seconds=0.05)
    scores = read(reranker, "dog", ["dog", "cat", "dog", "dog"], seconds=0.01)
    assert scores.tolist() == pytest.approx([1.0, 0.0, np.nan, np.nan], nan_ok=True)
    assert len(reranker.batches) == 1


def test_as_many_are_read_as_the_first_batch_lets_hope():
    reranker = Slow(batch_size=1, seconds=0.05)
    scores = read(reranker, "dog", ["dog"] * 50, seconds=0.18)
    assert 1 <= np.isfinite(scores).sum() <= 4
    assert np.isfinite(scores[: len(reranker.batches)]).all()


def test_what_was_scored_before_is_not_scored_again():
    reranker, known = Slow(batch_size=2), {}
    query, passages = RerankQuery("dog"), [RerankPassage("dog"), RerankPassage("cat")]
    score_relevance(reranker, query, passages, seconds=None, known=known)
    more = [RerankPassage("hen"), *passages]
    found = score_relevance(reranker, query, more, seconds=30, known=known)
    assert found.tolist() == [0.0, 1.0, 0.0]
    assert reranker.batches == [["dog", "cat"], ["hen"]]
    score_relevance(reranker, RerankQuery("cat"), passages, seconds=None, known=known)
    assert reranker.batches[2:] == [["dog", "cat"]]
