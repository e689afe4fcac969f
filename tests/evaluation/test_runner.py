import pytest

from ekphory.errors import InvalidInput
from ekphory_lab.evaluation.loaders import load_conversation
from ekphory_lab.evaluation.metrics import measures
from ekphory_lab.evaluation.runner import evaluate
from ekphory_lab.evaluation.systems import bm25_system


class FixedSystem:
    """Gives the same ranking for every query, and remembers what happened in which order."""

    name = "fixed"

    def __init__(self, *ids):
        self.configuration = {"made": "for this test"}
        self.ids = ids
        self.events = []

    def retriever(self, pool, _passages, /):
        self.events.append(f"index {pool}")

        def search(query, _k, /):
            self.events.append(f"search {query.pool}")
            return [(passage_id, 1.0 / rank) for rank, passage_id in enumerate(self.ids, start=1)]

        return search


@pytest.fixture
def dataset(conversation_folder):
    return load_conversation(conversation_folder)


def test_scores_are_means_over_all_queries_of_all_pools(dataset):
    # Relevant: a/0 D1:1 and D1:3, a/1 D1:2, b/0 D1:1.
    report = evaluate(dataset, FixedSystem("D1:1"), measures=measures(["MAP", "R@5"]))
    assert report.overall.estimates["MAP"].mean == pytest.approx((0.5 + 0.0 + 1.0) / 3)
    assert report.overall.queries == 3


def test_categories_are_reported_apart(dataset):
    report = evaluate(dataset, FixedSystem("D1:1"), measures=measures(["R@5"]))
    assert {name: group.queries for name, group in report.categories.items()} == {"1": 1, "4": 2}
    assert report.categories["4"].estimates["R@5"].mean == pytest.approx((0.5 + 1.0) / 2)


def test_all_pools_are_indexed_before_the_first_query(dataset):
    system = FixedSystem("D1:1")
    evaluate(dataset, system)
    assert system.events == ["index a", "index b", "search a", "search a", "search b"]


def test_every_relevant_passage_has_its_rank_or_none(dataset):
    report = evaluate(dataset, FixedSystem("D1:2", "D1:1"))
    assert report.outcomes[0].relevant_ranks == {"D1:1": 2, "D1:3": None}


def test_only_the_first_depth_passages_count(dataset):
    report = evaluate(dataset, FixedSystem("D1:2", "D1:1"), depth=1)
    assert report.outcomes[0].relevant_ranks == {"D1:1": None, "D1:3": None}


def test_a_passage_given_twice_is_refused(dataset):
    with pytest.raises(InvalidInput, match="came twice"):
        evaluate(dataset, FixedSystem("D1:1", "D1:1"))


def test_a_passage_from_elsewhere_is_refused(dataset):
    with pytest.raises(InvalidInput, match="not in the pool"):
        evaluate(dataset, FixedSystem("D7:7"))


def test_depth_zero_is_refused(dataset):
    with pytest.raises(InvalidInput, match="depth=0"):
        evaluate(dataset, FixedSystem("D1:1"), depth=0)


def test_progress_is_told_of_every_pool_and_query(dataset):
    told = []
    evaluate(dataset, FixedSystem("D1:1"), progress=lambda *step: told.append(step))
    assert told == [
        ("index", 1, 2),
        ("index", 2, 2),
        ("search", 1, 3),
        ("search", 2, 3),
        ("search", 3, 3),
    ]


def test_latencies_are_ordered_and_positive(dataset):
    latency = evaluate(dataset, bm25_system()).latency
    assert 0 < latency.p50 <= latency.p95
