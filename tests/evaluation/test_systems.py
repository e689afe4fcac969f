import numpy as np
import pytest
from tests.evaluation.conftest import SETS

from ekphory_lab.evaluation.datasets import EvaluationQuery, Passage
from ekphory_lab.evaluation.loaders import load_conversation
from ekphory_lab.evaluation.runner import evaluate
from ekphory_lab.evaluation.systems import (
    EkphorySystem,
    bm25_scorer,
    bm25_system,
    dense_system,
    fused_system,
    reciprocal_rank_fusion,
    z_scored_mean,
)

PASSAGES = (
    Passage(id="cat", text="I adopted a grey cat", speaker="Ann"),
    Passage(id="boat", text="The boat sank", speaker="Bob"),
    Passage(id="cats", text="Cats sleep all day", speaker="Ann"),
)


def ask(text):
    return EvaluationQuery(pool="p", id="1", text=text)


def test_bm25_finds_by_stem_and_leaves_out_what_shares_no_term():
    search = bm25_system().retriever("p", PASSAGES)
    assert {passage for passage, _ in search(ask("cat"), 10)} == {"cat", "cats"}
    # It finds nothing for a query without a known term.
    for query in ("", "the", "zebra", "\ud800"):
        assert search(ask(query), 10) == []
    # It takes texts without a single term.
    assert np.isnan(bm25_scorer(["", "the"])("cat")).all()


def test_dense_ranks_the_same_words_first(embedder):
    search = dense_system(embedder).retriever("p", PASSAGES)
    [(best, score)] = search(ask("Bob: The boat sank"), 1)
    assert (best, score) == ("boat", pytest.approx(1.0))


def test_the_mean_standardises_each_arm_before_averaging():
    lexical = np.array([4.0, 0.0, np.nan, np.nan])
    dense = np.array([0.0, 0.5, 0.5, 0.0])
    first = (np.array([4.0, 0.0, 0.0, 0.0]) - 1.0) / np.sqrt(3.0)
    second = np.array([-1.0, 1.0, 1.0, -1.0])
    assert z_scored_mean(lexical, dense) == pytest.approx((first + second) / 2)


def test_rrf_adds_reciprocals_of_ranks():
    fused = reciprocal_rank_fusion(np.array([9.0, 5.0, np.nan]), np.array([0.1, 0.2, np.nan]))
    assert fused[:2] == pytest.approx([1 / 61 + 1 / 62, 1 / 62 + 1 / 61])
    assert np.isnan(fused[2])


@pytest.mark.parametrize("fusion", ["mean", "rrf"])
def test_a_hybrid_names_both_of_its_arms_in_its_configuration(fusion, embedder):
    system = fused_system(fusion, embedder)
    assert system.configuration["embedder"] == "hash-embedder@1 (64-d)"
    assert str(system.configuration["library"]).startswith("bm25s ")
    # It gives at most k.
    assert len(system.retriever("p", PASSAGES)(ask("grey cat"), 2)) == 2


def test_ekphory_finds_the_evidence_in_each_pool(embedder):
    with EkphorySystem(embedder=embedder) as system:
        report = evaluate(load_conversation(SETS / "chats"), system)
    assert report.overall.scores["R@5"].mean == 1.0
    # A search never leaves its pool.
    sizes = {outcome.query.key: len(outcome.ranking) for outcome in report.outcomes}
    assert sizes == {("a", "0"): 3, ("a", "1"): 3, ("b", "0"): 2}
