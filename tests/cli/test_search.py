import re

import pytest


def test_hits_are_shown_with_their_speaker_and_what_they_are(kitchen):
    result = kitchen.run("search", "who repaired the sink?", "--k", "1")
    first, second = (line.strip() for line in result.stdout.splitlines())
    assert re.fullmatch(r"1 \d\.\d\d Ben: Anna repaired the sink", first)
    assert second == "2026-03-02 00:00Z · episodic · importance 0.9 · id sink"


def test_json_carries_the_hits_with_their_memories_and_the_trace(kitchen):
    found = kitchen.json("search", "who repaired the sink?", "--k", "2")
    assert list(found) == ["query", "abstained", "order", "hits", "trace"]
    assert (found["query"], found["abstained"], len(found["hits"])) == (
        "who repaired the sink?",
        False,
        2,
    )
    best = found["hits"][0]
    assert list(best) == ["id", "text", "score", "scores", "memory"]
    assert (best["id"], best["memory"]["producer"]) == ("sink", "Ben")
    assert found["trace"]["stages"][0].keys() == {
        "number", "name", "status", "reason", "candidates_in", "candidates_out",
        "milliseconds", "detail",
    }  # fmt: skip


def test_the_empty_query_lists_the_newest(kitchen):
    found = kitchen.json("search", "", "--k", "2")
    assert [hit["id"] for hit in found["hits"]] == ["knives", "sink"]


def test_a_filter_narrows_the_search(kitchen):
    found = kitchen.json("search", "kitchen", "--filter", "importance >= 0.8")
    assert [hit["id"] for hit in found["hits"]] == ["sink"]


def test_a_pool_narrows_the_search(kitchen):
    kitchen.run("add", "Wash your hands", "--id", "hands", "--pool", "shared_rules")
    found = kitchen.json("search", "kitchen", "--pool", "shared_rules")
    assert [hit["id"] for hit in found["hits"]] == ["hands"]


def test_the_moment_of_asking_decides_what_has_expired(kitchen):
    kitchen.run("add", "Milk is fresh", "--id", "milk", "--expires-at", "2090-01-01")
    found = kitchen.json("search", "milk", "--now", "2091-01-01")
    assert "milk" not in [hit["id"] for hit in found["hits"]]


def test_explain_draws_the_stages_and_the_raw_scores(kitchen):
    lines = kitchen.run("search", "the sink", "--preset", "rrf", "--explain").stdout.splitlines()
    title = next(line for line in lines if line.startswith("preset rrf: "))
    assert re.fullmatch(r"preset rrf: \d+ stages, \d+\.\d ms\s*", title)
    stage = next(line for line in lines if "search pools" in line)
    assert re.match(r"\s+4\s+search pools\s+0 → 3\s+\d+\.\d\s+ran\s+dense found 3", stage)
    header = next(line for line in lines if line.strip().startswith("#   cosine"))
    assert header.split() == [
        "#",
        "cosine",
        "bm25",
        "lexical",
        "lexical_bound",
        "fused",
        "probability",
        "boost",
        "id",
    ]


def test_explain_says_why_a_stage_was_skipped(ekphory):
    ekphory.run("add", "The oven is broken", "--project", "kitchen")
    result = ekphory.run("search", "oven", "--project", "garden", "--explain")
    assert "skipped   no memory is visible" in result.stdout


def test_nothing_found_is_an_empty_result_and_no_error(ekphory):
    ekphory.run("add", "The oven is broken", "--project", "kitchen")
    result = ekphory.run("search", "oven", "--project", "garden")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "No memory matches.\n")
    assert ekphory.json("search", "oven", "--project", "garden")["hits"] == []


def test_below_the_least_score_the_search_says_that_it_abstains(kitchen):
    result = kitchen.run("search", "quantum chromodynamics", "--min-score", "1")
    assert (result.exit_code, result.stderr) == (0, "No memory reaches --min-score.\n")
    assert kitchen.json("search", "quantum", "--min-score", "1")["abstained"] is True


def test_the_scope_comes_from_the_environment_and_the_option_wins(ekphory):
    ekphory.run("add", "oven", "--id", "a", EKPHORY_PROJECT="kitchen")
    ekphory.run("add", "oven", "--id", "b", "--project", "bakery", EKPHORY_PROJECT="kitchen")
    found = ekphory.json("search", "oven", EKPHORY_PROJECT="kitchen")
    assert [hit["id"] for hit in found["hits"]] == ["a"]
    assert ekphory.json("get", "b")["project"] == "bakery"


def test_a_stored_text_cannot_steer_the_terminal(ekphory):
    ekphory.run("add", "red \x1b[31malert\x07 [bold]x[/bold]", "--id", "trap")
    shown = ekphory.run("search", "alert").stdout
    assert r"red \x1b[31malert\x07 [bold]x[/bold]" in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--k", "0"), "k=0: is out of range. Give 1 to 1,000"),
        (("--k", "1001"), "k=1001: is out of range. Give 1 to 1,000"),
        (("--min-score", "2"), "min_score=2.0: must be between 0 and 1. Give a number from 0 to 1"),
        (
            ("--preset", "nosuch"),
            "preset='nosuch': no such preset. "
            "Choose one of accurate, balanced, fast, memory_spark, rrf",
        ),
        (
            ("--pool", "attic"),
            "pools='attic': no such pool in this scope. Choose from agent_memory, "
            "agent_mistakes, agent_tools, reference_code, reference_library, shared_knowledge, "
            "shared_mistakes, shared_rules",
        ),
    ],
)
def test_an_argument_out_of_range_is_named_with_its_remedy(kitchen, arguments, sentence):
    assert kitchen.failure("search", "oven", *arguments) == sentence


@pytest.mark.parametrize("condition", ["producer =", "importance > 'x'", "", "x; DROP TABLE y"])
def test_a_malformed_filter_is_refused(kitchen, condition):
    assert kitchen.failure("search", "oven", "--filter", condition).startswith("filter=")
