import json

import pytest

from ekphory_lab.evaluation.loaders import load_conversation
from ekphory_lab.evaluation.runner import evaluate, misses, to_json
from ekphory_lab.evaluation.systems import bm25_system


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


def test_the_json_report_has_every_query_with_scores_and_ranks(report):
    rows = to_json(report)["queries"]
    assert [(row["pool"], row["id"]) for row in rows] == [("a", "0"), ("a", "1"), ("b", "0")]
    assert rows[1]["relevant_ranks"] == {"D1:2": 1}
    assert rows[1]["scores"]["MAP"] == 1.0


def test_the_json_report_has_means_with_intervals_overall_and_per_category(report):
    document = to_json(report)
    assert document["overall"]["scores"]["MAP"].keys() == {"mean", "low", "high"}
    assert document["categories"].keys() == {"1", "4"}
    assert document["latency_ms"].keys() == {"p50", "p95", "mean"}


def test_a_query_is_missed_when_a_relevant_passage_is_below_the_cutoff(report):
    assert [outcome.query.key for outcome in misses(report, cutoff=1)] == [("a", "0")]
    assert misses(report, cutoff=10) == ()
