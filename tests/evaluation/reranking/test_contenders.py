import math

import numpy as np
import pytest
from tests.models.tiny_rerankers import write_overlap_reranker

from ekphory.errors import InvalidInput
from ekphory.models.onnx_models import OnnxReranker
from ekphory.models.reranker import RerankPassage, RerankQuery, bundled_reranker
from ekphory.testing import OverlapReranker
from ekphory.testing.reranker_contract import LargeInputRerankerContract, RerankerContract
from ekphory_lab.evaluation.reranking.candidates import (
    BM25,
    FIRST_STAGE_ALONE,
    Bm25Reranker,
    CandidateList,
    Contender,
    Judge,
    ScoredList,
    load_contenders,
    model_contender,
)
from ekphory_lab.evaluation.systems import bm25_scorer


def names(*specs):
    return [each.name for each in load_contenders(specs, load=lambda _: OverlapReranker())]


def test_the_first_stage_alone_always_comes_first(tmp_path):
    assert names("bm25", "none") == ["none", "bm25"]
    assert names() == ["none"]
    # A model is called by its name, and the bundled one `bundled`.
    assert names("https://host/rerank", "bundled") == ["none", "overlap-reranker", "bundled"]
    # A model in a directory is called by it.
    assert names(str(tmp_path)) == ["none", tmp_path.name]
    # Two of one name are refused.
    with pytest.raises(InvalidInput, match="two called 'bm25'"):
        names("bm25", "bm25")


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
    # What shares no word scores nothing.
    assert scores("Who adopted a dog?", *TURNS) == [0.0] * 4
    assert scores("", *TURNS) == [0.0] * 4


def test_the_order_is_that_of_bm25s():
    expected = bm25_scorer(TURNS)("Do boats sink in harbours?")
    found = scores("Do boats sink in harbours?", *TURNS)
    found_order = sorted(range(4), key=lambda row: -found[row])
    assert found_order[:2] == [1, 3]
    assert [row for row in found_order if found[row] > 0] == sorted(
        (row for row in range(4) if expected[row] > 0), key=lambda row: -expected[row]
    )


def scored(*scores, ranking=(0.9, 0.5, 0.1)):
    found = CandidateList(
        ("a", "0"), "a", RerankQuery("?"), ("x", "y", "z"), {"ranking": tuple(ranking)}
    )
    return ScoredList(found, np.array(scores), np.zeros(3))


def test_equal_scores_keep_the_order_of_the_first_stage():
    assert scored(0.2, 0.3, 0.2).order().tolist() == [1, 0, 2]
    # A share of the first stage is added.
    found = scored(0.4, 0.5, 0.6, ranking=(0.9, 0.89, 0.1))
    assert found.order(first_stage_share=0.6).tolist() == [1, 0, 2]
    # What was not read follows in its order.
    assert scored(0.1, 0.2, float("nan")).order().tolist() == [1, 0, 2]


def test_without_a_reranker_order_and_probability_are_those_of_the_first_stage(dataset, candidates):
    judge = Judge(FIRST_STAGE_ALONE, candidates, dataset.pools)
    boat = judge.score(candidates.own[1])
    assert boat.order().tolist() == [0, 1, 2]
    assert boat.probabilities.tolist() == list(boat.found.scores["probability"])
    assert judge.is_calibrated

    # Scores that nobody calibrated are taken as they come.
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


@pytest.fixture(scope="module")
def tiny_onnx(tmp_path_factory):
    return OnnxReranker(write_overlap_reranker(tmp_path_factory.mktemp("tiny")))


BUNDLED = ("ekphory-rerank-small", "ekphory-rerank-tiny")


@pytest.fixture
def contender(request, tiny_onnx):
    own = {
        "overlap": OverlapReranker(),
        "bm25": Bm25Reranker(["Ann: The ferry leaves from the pier.", "Ben: I had soup."]),
        "onnx": tiny_onnx,
    }
    return own.get(request.param) or bundled_reranker(request.param)


class Contenders:
    @pytest.fixture
    def reranker(self, contender):
        return contender


@pytest.mark.parametrize("contender", ["overlap", "bm25", "onnx", *BUNDLED], indirect=True)
class TestContender(Contenders, RerankerContract):
    pass


@pytest.mark.parametrize(
    "contender",
    [
        "overlap",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("bm25", "onnx")),
        *(pytest.param(name, marks=pytest.mark.long) for name in BUNDLED),
    ],
    indirect=True,
)
class TestContenderWithMuch(Contenders, LargeInputRerankerContract):
    pass
