import json

import pytest

from ekphory.errors import DatasetError, InvalidInput
from ekphory_lab.evaluation.loaders import load_conversation
from ekphory_lab.evaluation.metrics import measures
from ekphory_lab.evaluation.runner import (
    ScoreTable,
    compare,
    evaluate,
    misses,
    read_score_tables,
    score_table,
    to_json,
    write_reports,
)
from ekphory_lab.evaluation.systems import bm25_system, dense_system


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


@pytest.fixture
def report(conversation_folder):
    return evaluate(load_conversation(conversation_folder), bm25_system())


def test_the_json_report_says_what_was_measured_on_what(report):
    document = json.loads(json.dumps(to_json(report)))
    assert document["system"] == "bm25"
    assert document["configuration"]["stemmer"] == "english"
    assert document["dataset"]["sha256"] == report.dataset.sha256
    assert document["dataset"]["verified"] is False
    assert document["version"]


def test_a_query_is_missed_when_a_relevant_passage_is_below_the_cutoff(report):
    assert [outcome.query.key for outcome in misses(report, cutoff=1)] == [("a", "0")]
    assert misses(report, cutoff=10) == ()


def test_the_difference_is_second_minus_first():
    first = ScoreTable("old", {("p", "1"): {"MAP": 0.2}, ("p", "2"): {"MAP": 0.4}})
    second = ScoreTable("new", {("p", "1"): {"MAP": 0.5}, ("p", "2"): {"MAP": 0.3}})
    test = compare(first, second).tests["MAP"]
    assert test.difference == pytest.approx(0.1)
    assert (test.better, test.worse) == (1, 1)


def test_queries_are_matched_by_key_and_not_by_order():
    first = ScoreTable("old", {("p", "1"): {"MAP": 0.2}, ("p", "2"): {"MAP": 0.4}})
    second = ScoreTable("new", {("p", "2"): {"MAP": 0.4}, ("p", "1"): {"MAP": 0.2}})
    assert compare(first, second).tests["MAP"].p_value == 1.0


def test_runs_over_other_queries_are_not_compared():
    first = ScoreTable("old", {("p", "1"): {"MAP": 0.2}})
    second = ScoreTable("new", {("p", "2"): {"MAP": 0.2}})
    with pytest.raises(DatasetError, match="of which 0 are the same"):
        compare(first, second)


def test_runs_without_a_common_measure_are_not_compared():
    first = ScoreTable("old", {("p", "1"): {"MAP": 0.2}})
    second = ScoreTable("new", {("p", "1"): {"R@5": 0.2}})
    with pytest.raises(DatasetError, match="no measure in common"):
        compare(first, second)


def test_scores_come_back_from_the_json_file_unchanged(conversation_folder, embedder, tmp_path):
    dataset = load_conversation(conversation_folder)
    reports = tuple(evaluate(dataset, each) for each in (bm25_system(), dense_system(embedder)))
    write_reports(reports, tmp_path / "x.json")
    assert read_score_tables(tmp_path / "x.json") == tuple(map(score_table, reports))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"reports": [{"system": "x"}]}', "null"])
def test_a_file_that_is_no_report_is_refused_by_name(content, tmp_path):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(DatasetError, match=r"x\.json: not the JSON file of an evaluation"):
        read_score_tables(tmp_path / "x.json")
