import numpy as np
import pytest
from tests.evaluation.agentmem.timed_embedder import TimedEmbedder

from ekphory_lab.evaluation.agentmem import score_traits, spearman
from ekphory_lab.evaluation.agentmem_cases import LabelledText

TEXTS = (
    LabelledText("ok", 0.0, "unknown"),
    LabelledText("I like tea", 0.75, "semantic"),
    LabelledText("I am allergic to nuts", 1.0, "semantic"),
    LabelledText("We met", 0.25, "episodic"),
)


def scored(models=None):
    return {each.source: each for each in score_traits({"texts": TEXTS}, models or {})}


def test_the_same_order_correlates_fully_and_the_opposite_one_negatively():
    assert spearman(np.array([1.0, 2, 9]), np.array([0.1, 0.2, 0.3])) == pytest.approx(1)
    assert spearman(np.array([3.0, 2, 1]), np.array([0.1, 0.2, 0.3])) == pytest.approx(-1)


def test_what_does_not_vary_has_no_correlation():
    assert np.isnan(spearman(np.ones(3), np.array([0.1, 0.2, 0.3])))


def test_length_is_a_source_of_importance_and_says_no_type():
    found = scored()["length"]
    assert found.importance.mean == pytest.approx(1)
    assert found.type is None


def test_a_constant_tells_the_commonest_type_and_no_importance():
    found = scored()["constant"]
    assert (found.type.mean, found.typed_texts) == (pytest.approx(2 / 3), 3)
    assert found.importance is None


def test_the_heads_of_a_model_are_judged():
    found = scored({"timed": TimedEmbedder()})["timed"]
    assert found.importance.mean == pytest.approx(1)
    assert found.type.mean == pytest.approx(2 / 3)


def test_a_model_without_heads_is_not_listed(embedder):
    assert "plain" not in scored({"plain": embedder})


def test_a_set_without_texts_is_not_listed():
    assert score_traits({"nothing": ()}, {}) == ()
