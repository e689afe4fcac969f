import json

import pytest

from ekphory.errors import InvalidInput
from ekphory_lab.evaluation.commands import (
    RunOptions,
    compare_reports,
    compare_with_file,
    run_beir,
    run_conversation,
    run_multihop,
)


def test_every_system_asked_for_is_measured_in_that_order(conversation_folder, embedder):
    options = RunOptions(systems=("rrf", "bm25", "mean", "dense"), embedder=embedder)
    reports = run_conversation(conversation_folder, options=options)
    assert [report.system for report in reports] == ["rrf", "bm25", "mean", "dense"]


def test_the_files_asked_for_are_written(conversation_folder, tmp_path):
    options = RunOptions(
        systems=("bm25",), json_file=tmp_path / "out" / "x.json", run_folder=tmp_path / "runs"
    )
    run_conversation(conversation_folder, options=options)
    assert len(json.loads((tmp_path / "out" / "x.json").read_text())["reports"]) == 1
    assert {file.name for file in (tmp_path / "runs").iterdir()} == {
        "chats.qrels",
        "chats.bm25.run",
    }


def test_multihop_reports_whether_all_gold_passages_were_found(conversation_folder):
    report = run_multihop(conversation_folder, options=RunOptions(systems=("bm25",)))[0]
    assert {"R@2", "R@5", "R@10", "AllGold@10"} <= report.overall.estimates.keys()


def test_an_unknown_system_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(InvalidInput, match="system='bm52'"):
        run_beir(tmp_path / "missing", options=RunOptions(systems=("bm52",)))


def test_no_system_at_all_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="Name one"):
        run_beir(tmp_path / "missing", options=RunOptions(systems=()))


def test_a_conversation_is_measured_in_all_phrasings_and_without_wrong_labels(
    conversation_folder, tmp_path
):
    queries = conversation_folder / "queries.jsonl"
    boat = '"What happened to the boat?"'
    queries.write_text(queries.read_text().replace(boat, f'{boat}, "phrasings": ["The boat?"]'))
    wrong = tmp_path / "wrong.json"
    wrong.write_text(f'[{{"question_id": "locomo_0_qa1", "question": {boat}}}]')
    (report,) = run_conversation(
        conversation_folder,
        label_errors=wrong,
        phrasings="all",
        options=RunOptions(systems=("bm25",)),
    )
    assert report.overall.queries == 4
    assert report.without_label_errors.queries == 2


def test_the_first_system_is_compared_with_the_others(conversation_folder, embedder):
    options = RunOptions(systems=("mean", "bm25", "dense"), embedder=embedder)
    reports = run_conversation(conversation_folder, options=options)
    comparisons = compare_reports(reports)
    assert [(each.first, each.second) for each in comparisons] == [
        ("bm25", "mean"),
        ("dense", "mean"),
    ]


def test_a_run_repeated_does_not_differ_from_its_file(conversation_folder, tmp_path):
    options = RunOptions(systems=("bm25",), json_file=tmp_path / "x.json")
    run_conversation(conversation_folder, options=options)
    again = run_conversation(conversation_folder, options=options)
    comparison = compare_with_file(again, tmp_path / "x.json")[0]
    assert {test.difference for test in comparison.tests.values()} == {0.0}
