import json

import pytest
from tests.evaluation.conftest import SETS

from ekphory.errors import InvalidInput
from ekphory.types import to_plain_data
from ekphory_lab.evaluation.loaders import load_conversation
from ekphory_lab.evaluation.metrics import measures
from ekphory_lab.evaluation.runner import compare, evaluate, misses, to_json
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
def dataset():
    return load_conversation(SETS / "chats")


def test_scores_are_means_over_all_queries_of_all_pools(dataset):
    # Relevant: a/0 D1:1 and D1:3, a/1 D1:2, b/0 D1:1.
    report = evaluate(dataset, FixedSystem("D1:1"), measures=measures(["MAP", "R@5"]))
    assert report.overall.scores["MAP"].mean == pytest.approx((0.5 + 0.0 + 1.0) / 3)
    assert report.overall.queries == 3


def test_all_pools_are_indexed_before_the_first_query(dataset):
    told, system = [], FixedSystem("D1:1")
    evaluate(dataset, system, progress=lambda *step: told.append(step))
    assert system.events == ["index a", "index b", "search a", "search a", "search b"]
    # Progress is told of every pool and query.
    assert told == [
        *(("index", done, 2) for done in (1, 2)),
        *(("search", done, 3) for done in (1, 2, 3)),
    ]


def test_every_relevant_passage_has_its_rank_or_none(dataset):
    report = evaluate(dataset, FixedSystem("D1:2", "D1:1"))
    assert report.outcomes[0].relevant_ranks == {"D1:1": 2, "D1:3": None}
    # Only the first depth passages count.
    report = evaluate(dataset, FixedSystem("D1:2", "D1:1"), depth=1)
    assert report.outcomes[0].relevant_ranks == {"D1:1": None, "D1:3": None}


@pytest.mark.parametrize(
    ("ids", "depth", "message"),
    [
        (("D1:1", "D1:1"), 100, "came twice"),
        (("D7:7",), 100, "not in the pool"),
        (("D1:1",), 0, "depth=0"),
    ],
)
def test_a_ranking_that_cannot_be_scored_is_refused(dataset, ids, depth, message):
    with pytest.raises(InvalidInput, match=message):
        evaluate(dataset, FixedSystem(*ids), depth=depth)


def test_the_json_report_says_what_was_measured_on_what(dataset):
    report = evaluate(dataset, bm25_system())
    document = json.loads(json.dumps(to_plain_data(to_json(report))))
    assert document["system"] == "bm25"
    assert document["configuration"]["stemmer"] == "english"
    assert document["dataset"]["sha256"] == report.dataset.sha256
    assert document["dataset"]["verified"] is False
    assert document["version"]
    # A query is missed when a relevant passage is below the cutoff.
    assert [outcome.query.key for outcome in misses(report, cutoff=1)] == [("a", "0")]
    assert misses(report, cutoff=10) == ()


def test_the_difference_is_second_minus_first(dataset):
    first, second = (
        evaluate(dataset, FixedSystem(*ids), measures=measures(["MAP"]))
        for ids in (("D1:1",), ("D1:2",))
    )
    found = compare(first, second)
    # Relevant: a/0 D1:1 and D1:3, a/1 D1:2, b/0 D1:1.
    assert found.tests["MAP"].difference == pytest.approx((-0.5 + 1.0 - 1.0) / 3)
    assert (found.tests["MAP"].better, found.tests["MAP"].worse) == (1, 2)
