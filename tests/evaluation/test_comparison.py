import pytest

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.loaders import load_conversation
from ekphory_lab.evaluation.runner import (
    ScoreTable,
    compare,
    evaluate,
    read_score_tables,
    score_table,
    write_reports,
)
from ekphory_lab.evaluation.systems import bm25_system, dense_system


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
