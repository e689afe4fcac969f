"""`ekphory supersede` and its kin: what holds now, and what held before."""

import numpy as np
import pytest

from ekphory import engine
from ekphory.models.changes import CHANGE_KINDS, ChangeThresholds


class Unsure:
    """Takes every pair for a half sure ending."""

    name = "unsure@1"
    thresholds = ChangeThresholds(acts=0.8, shows=0.4)

    def read(self, pairs):
        rows = np.zeros((len(pairs), len(CHANGE_KINDS)), np.float32)
        rows[:, CHANGE_KINDS.index("ends")] = 0.5
        return rows


@pytest.fixture
def moved(ekphory):
    for name, at, text in (
        ("rome", "2024-01-05", "Mara lives in Rome"),
        ("bonn", "2025-09-05", "Mara lives in Bonn"),
    ):
        ekphory.run("add", text, "--id", name, "--at", at, "--type", "semantic")
    return ekphory


def test_a_superseded_memory_is_listed_below_and_marked(moved):
    made = moved.json("supersede", "rome", "--by", "bonn")
    assert (made["older"], made["newer"], made["kind"], made["state"]) == (
        "rome", "bonn", "replaces", "active",
    )  # fmt: skip
    hits = moved.json("search", "Mara lives in Rome")["hits"]
    assert [hit["id"] for hit in hits] == ["bonn", "rome"]
    assert (hits[1]["superseded_by"], hits[1]["since"][:10]) == ("bonn", "2025-09-05")
    shown = moved.run("search", "Mara lives in Rome").stdout
    assert "superseded by bonn since 2025-09-05" in shown
    hidden = moved.json("search", "Mara lives in Rome", "--superseded", "hide")["hits"]
    assert [hit["id"] for hit in hidden] == ["bonn"]


def test_the_history_of_a_superseded_memory_tells_by_what_and_since_when(moved):
    moved.run("supersede", "rome", "--by", "bonn")
    found = moved.json("history", "rome")
    assert (found["superseded_by"], found["since"][:10]) == ("bonn", "2025-09-05")
    shown = moved.run("history", "rome").stdout
    assert shown.split()[:2] == ["1", "was"]
    assert "superseded by bonn since 2025-09-05" in shown
    assert moved.json("history", "bonn")["superseded_by"] is None


def test_search_and_history_tell_the_moment_that_a_decision_was_given(moved):
    moved.run("supersede", "rome", "--by", "bonn", "--at", "2025-08-01")
    hits = moved.json("search", "Mara lives in Rome")["hits"]
    assert hits[1]["since"][:10] == moved.json("history", "rome")["since"][:10] == "2025-08-01"
    assert "superseded by bonn since 2025-08-01" in moved.run("history", "rome").stdout


def test_what_holds_until_a_decision_takes_effect_is_no_history_yet(moved):
    moved.run("supersede", "rome", "--by", "bonn", "--at", "2099-01-01")
    assert moved.json("history", "rome")["superseded_by"] is None
    hits = moved.json("search", "Mara lives in Rome")["hits"]
    assert [(hit["id"], hit["superseded_by"]) for hit in hits] == [("rome", None), ("bonn", None)]


def test_a_decision_is_taken_back_by_what_the_command_said(moved):
    said = moved.run("supersede", "rome", "--by", "bonn").stdout
    revision = said.rpartition("unsupersede ")[2].strip()
    assert moved.json("unsupersede", revision) == {"undone": 1}
    hits = moved.json("search", "Mara lives in Rome")["hits"]
    assert [hit["superseded_by"] for hit in hits] == [None, None]


def test_decisions_that_act_are_listed_with_their_ids(moved):
    moved.run("supersede", "rome", "--by", "bonn")
    (found,) = moved.json("revisions")["revisions"]
    assert (found["older"], found["newer"], found["state"]) == ("rome", "bonn", "active")
    shown = moved.run("revisions").stdout
    lines = [line.strip() for line in shown.splitlines()[:3]]
    assert lines == [
        "1.00 replaces",
        "older rome: Mara lives in Rome",
        "newer bonn: Mara lives in Bonn",
    ]
    assert f"{found['id']} · active · by caller · batch {found['batch']}" in shown


def test_all_decisions_of_a_batch_are_taken_back_by_the_batch_that_is_shown(moved, monkeypatch):
    moved.run("add", "Jan lives in Bern", "--id", "jan", "--at", "2025-10-05")
    monkeypatch.setattr(engine, "_find_reader", lambda: lambda: Unsure())
    waiting = moved.json("conflicts", "--scan")["conflicts"]
    assert len(waiting) > 1
    batch = moved.run("conflicts").stdout.partition("batch ")[2].split()[0]
    assert moved.json("unsupersede", "--batch", batch) == {"undone": len(waiting)}
    assert moved.json("revisions") == {"revisions": []}


def test_a_timeline_and_a_profile_are_shown(moved):
    moved.run("supersede", "rome", "--by", "bonn")
    states = moved.json("timeline", "where Mara lives")["states"]
    assert [(state["memory"]["id"], state["until"] is None) for state in states] == [
        ("rome", False), ("bonn", True),
    ]  # fmt: skip
    assert "2024-01-05 to 2025-09-05" in moved.run("timeline", "where Mara lives").stdout
    (fact,) = moved.json("profile")["profile"]
    assert (fact["text"], fact["evidence"]) == ("Mara lives in Bonn", ["bonn"])
    assert "since 2025-09-05" in moved.run("profile").stdout


def test_a_conflict_is_listed_with_both_texts(moved, monkeypatch):
    monkeypatch.setattr(engine, "_find_reader", lambda: lambda: Unsure())
    (found,) = moved.json("conflicts", "--scan")["conflicts"]
    assert (found["older"], found["newer"], found["state"]) == ("rome", "bonn", "conflict")
    shown = moved.run("conflicts").stdout
    assert "0.50 ends" in shown
    assert "older rome: Mara lives in Rome" in shown
    assert "newer bonn: " in shown
    assert moved.json("unsupersede", found["id"]) == {"undone": 1}
    assert moved.json("conflicts", "--scan") == {"conflicts": []}


def test_nothing_to_look_at_is_said_in_words(moved):
    assert moved.json("conflicts") == {"conflicts": []}
    assert "No conflicts." in moved.run("conflicts").stderr
    assert "No decisions." in moved.run("revisions").stderr
    assert "No lasting fact" in moved.run("profile", "--user", "nobody").stderr
    assert moved.json("settle") == {"settled": True}


def test_decisions_on_a_memory_that_is_not_there_are_a_failure(moved):
    assert "id='nowhere': no such memory" in moved.failure("revisions", "--of", "nowhere")
    assert "No decisions." in moved.run("revisions", "--of", "rome").stderr


def test_a_decision_that_cannot_be_made_says_why(moved):
    assert "is the same memory" in moved.failure("supersede", "rome", "--by", "rome")
    assert "there is none in this scope" in moved.failure("unsupersede", "nothing")
