"""The rerankers that need no cross-encoder, worked out by hand."""

import numpy as np
import pytest

from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory.retrieval import ranking_rerankers
from ekphory.testing import HashEmbedder

TEA = RerankQuery("tea")
PASSAGES = [RerankPassage(text) for text in ("coffee beans", "tea tea", "tea leaves fall")]
SAME = ranking_rerankers.IdentityReranker("same")
WORDS = ranking_rerankers.Bm25Reranker("words")


def test_the_order_in_which_passages_come_can_be_kept():
    assert SAME.score(TEA, PASSAGES).tolist() == pytest.approx([1, 2 / 3, 1 / 3])
    assert SAME.score(TEA, []).tolist() == []


def test_bm25_counts_by_the_passages_themselves():
    # ln(1 + 1.5 / 2.5) is the weight of a term that two of three hold; the mean length is 7 / 3.
    weight, scores = np.log(1.6), []
    for count, length in ((0, 2), (2, 2), (1, 3)):
        raw = weight * count * 2.5 / (count + 1.5 * (0.25 + 0.75 * length / (7 / 3)))
        scores.append(raw / (1 + raw))
    assert WORDS.score(TEA, PASSAGES).tolist() == pytest.approx(scores)
    without_lengths = ranking_rerankers.Bm25Reranker("words", b=0.0).score(TEA, PASSAGES)
    raw = weight * 2 * 2.5 / 3.5
    assert without_lengths[1] == pytest.approx(raw / (1 + raw))


def test_an_embedder_orders_by_the_angle_to_the_query():
    embedder = HashEmbedder()
    scores = ranking_rerankers.EmbedderReranker("angle", embedder).score(TEA, PASSAGES)
    vectors, (query,) = embedder.encode([each.text for each in PASSAGES]), embedder.encode(["tea"])
    assert scores.tolist() == pytest.approx(np.clip(vectors @ query, 0, 1).tolist())


def test_ranks_of_several_rerankers_are_fused():
    fused = ranking_rerankers.RankFusionReranker("both", (SAME, WORDS), k=60).score(TEA, PASSAGES)
    # By the one they are first, second and third; by the other third, first and second.
    ranks = [(1, 3), (2, 1), (3, 2)]
    assert fused.tolist() == pytest.approx(
        [(61 / (60 + one) + 61 / (60 + other)) / 2 for one, other in ranks]
    )
