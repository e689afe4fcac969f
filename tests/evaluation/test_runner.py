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


def test_progress_is_told_of_every_pool_and_query(dataset):
    told = []
    evaluate(dataset, FixedSystem("D1:1"), progress=lambda *step: told.append(step))
    assert told == [
        *(("index", done, 2) for done in (1, 2)),
        *(("search", done, 3) for done in (1, 2, 3)),
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


def scores(**found):
    return ScoreTable("run", {("p", key): {"MAP": value} for key, value in found.items()})


def test_the_difference_is_second_minus_first():
    test = compare(scores(a=0.2, b=0.4), scores(a=0.5, b=0.3)).tests["MAP"]
    assert test.difference == pytest.approx(0.1)
    assert (test.better, test.worse) == (1, 1)


def test_queries_are_matched_by_key_and_not_by_order():
    assert compare(scores(a=0.2, b=0.4), scores(b=0.4, a=0.2)).tests["MAP"].p_value == 1.0


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (scores(b=0.2), "of which 0 are the same"),
        (ScoreTable("new", {("p", "a"): {"R@5": 0.2}}), "no measure in common"),
    ],
)
def test_runs_that_share_nothing_are_not_compared(second, message):
    with pytest.raises(DatasetError, match=message):
        compare(scores(a=0.2), second)


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
