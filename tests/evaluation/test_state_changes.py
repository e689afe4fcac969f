import json

import pytest

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.runner import silent
from ekphory_lab.evaluation.state_changes import (
    AskedState,
    judge_state,
    measure_state_changes,
    measure_unchanged,
    read_state_scenarios,
)
from ekphory_lab.training.changes import held_back_scenarios

MOVED = {
    "id": "home",
    "kind": "update",
    "memories": [
        {"key": "old", "at": "2024-01-05T12:00:00Z", "producer": "user", "text": "I live in Rome."},
        {"key": "dog", "at": "2024-06-05T12:00:00Z", "producer": "user", "text": "The dog is ill."},
    ],
    "now": "2025-01-05T12:00:00Z",
    "questions": [{"text": "Where do I live?", "first": ["old"], "above": [["old", "dog"]]}],
}


def test_the_asked_state_is_right_when_it_is_first_and_above_the_other():
    question = AskedState("Where?", ("new",), (("new", "old"),), is_past=False)
    assert judge_state(question, ["new", "dog", "old"]) == {
        "first@1": [True],
        "above": [True],
        "stale@1": [False],
        "found@3": [True],
    }
    assert judge_state(question, ["old", "new"]) == {
        "first@1": [False],
        "above": [False],
        "stale@1": [True],
        "found@3": [True],
    }
    assert judge_state(question, []) == {
        "first@1": [False],
        "above": [False],
        "stale@1": [False],
        "found@3": [False],
    }


def test_scenarios_of_a_file_are_added_and_asked(tmp_path):
    file = tmp_path / "scenarios.jsonl"
    file.write_text(json.dumps(MOVED) + "\n")
    report = measure_state_changes(read_state_scenarios(file), preset="balanced", progress=silent)
    assert report.questions == {"all": 1, "update": 1, "present": 1}
    right = {"first@1": 1.0, "above": 1.0, "stale@1": 0.0, "found@3": 1.0}
    assert report.figures == {"all": right, "update": right, "present": right}
    # Of one question no difference is sure.
    assert report.compared.p_value == 1.0


def test_memories_that_were_superseded_though_nothing_changes_them_are_counted(monkeypatch):
    monkeypatch.setenv("EKPHORY_DETECT_CHANGES", "1")
    told = [
        MOVED["memories"],
        [
            {"text": "I live in Rome", "at": "2024-01-05", "producer": "user"},
            {"text": "I live in Bonn now", "at": "2025-01-05", "producer": "user"},
        ],
    ]
    report = measure_unchanged(told, progress=silent)
    assert (report.memories, report.superseded) == (4, 1)


def test_an_answer_of_a_held_back_scenario_stands_above_what_it_supersedes():
    for scenario in held_back_scenarios():
        keys = {memory["id"] for memory in scenario.memories}
        for question in scenario.questions:
            assert set(question.first) <= keys
            lower = {low for _, low in question.above}
            assert not lower & set(question.first), scenario.id


def test_a_file_without_a_scenario_is_refused(tmp_path):
    file = tmp_path / "empty.jsonl"
    file.write_text("")
    with pytest.raises(DatasetError, match="holds no scenario"):
        read_state_scenarios(file)
