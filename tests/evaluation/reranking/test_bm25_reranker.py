import math

import pytest

from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory_lab.evaluation.reranking.contenders import Bm25Reranker
from ekphory_lab.evaluation.systems import bm25_scorer

TURNS = [
    "Ann: grey cats sleep",
    "Bob: boats sink and boats float in harbours",
    "Ann: cats chase boats",
    "Bob: harbours freeze",
]


def scores(question, *texts):
    passages = [RerankPassage(text) for text in texts]
    return Bm25Reranker(TURNS).score(RerankQuery(question), passages).tolist()


def test_a_score_is_bm25_over_the_most_that_the_question_could_reach():
    # "cat" is in two of four turns of mean length 4.25; the turn holds it once in four terms.
    rarity = math.log(1 + 2.5 / 2.5)
    frequency = 2.5 / (1 + 1.5 * (0.25 + 0.75 * 4 / 4.25))
    assert scores("cat?", "Ann: grey cats sleep") == pytest.approx(
        [rarity * frequency / (rarity * 2.5)]
    )


def test_the_order_is_that_of_bm25s():
    expected = bm25_scorer(TURNS)("Do boats sink in harbours?")
    found = scores("Do boats sink in harbours?", *TURNS)
    found_order = sorted(range(4), key=lambda row: -found[row])
    assert found_order[:2] == [1, 3]
    assert [row for row in found_order if found[row] > 0] == sorted(
        (row for row in range(4) if expected[row] > 0), key=lambda row: -expected[row]
    )


def test_what_shares_no_word_scores_nothing():
    assert scores("Who adopted a dog?", *TURNS) == [0.0] * 4
    assert scores("", *TURNS) == [0.0] * 4
