"""The real benchmark files, where they are beside the repository."""

import pytest

from ekphory_lab.evaluation.loaders import load_beir, load_conversation, load_locomo, load_multihop
from ekphory_lab.evaluation.runner import evaluate
from ekphory_lab.evaluation.systems import bm25_system


def test_locomos_own_file_and_the_conversation_form_give_the_same(shared_data):
    own = load_locomo(shared_data / "locomo_dev" / "locomo.json")
    other = load_conversation(shared_data / "locomo_dev")
    assert own.pools == other.pools
    assert own.queries == other.queries
    assert own.qrels == other.qrels


def test_locomo_has_760_answerable_questions_about_2760_turns(shared_data):
    dataset = load_locomo(shared_data / "locomo_dev" / "locomo.json")
    assert len(dataset.queries) == 760
    assert sum(map(len, dataset.pools.values())) == 2760


@pytest.mark.parametrize(
    ("name", "queries", "passages"),
    [("realtalk", 705, 8944), ("beam_100k", 355, 5732), ("temporal_dev", 1010, 3479)],
)
def test_the_other_conversations_are_complete_and_verified(shared_data, name, queries, passages):
    dataset = load_conversation(shared_data / name)
    assert (dataset.name, dataset.verified) == (name, True)
    assert len(dataset.queries) == queries
    assert sum(map(len, dataset.pools.values())) == passages


def test_the_temporal_set_says_when_a_question_is_asked(shared_data):
    assert all(query.at for query in load_conversation(shared_data / "temporal_dev").queries)


@pytest.mark.slow
def test_the_multihop_set_is_complete_and_verified(shared_data):
    dataset = load_multihop(shared_data / "2wiki_dev")
    assert (dataset.name, dataset.verified, len(dataset.queries)) == ("2wiki_dev", True, 500)


def test_scifact_is_complete_and_verified(shared_data):
    dataset = load_beir(shared_data / "scifact")
    assert (dataset.name, dataset.verified, len(dataset.queries)) == ("scifact", True, 300)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mean_average_precision", "recall"),
    [("locomo_dev", 0.383, 0.643), ("realtalk", 0.341, 0.546)],
)
def test_bm25_reaches_its_published_figures(shared_data, name, mean_average_precision, recall):
    estimates = evaluate(load_conversation(shared_data / name), bm25_system()).overall.estimates
    assert estimates["MAP"].mean == pytest.approx(mean_average_precision, abs=0.001)
    assert estimates["R@20"].mean == pytest.approx(recall, abs=0.001)
