import json
import re

import pytest
from tests.models.tiny_rerankers import write_overlap_reranker

from services.wire import running_service, says


def test_hits_are_shown_with_their_speaker_and_what_they_are(kitchen):
    result = kitchen.run("search", "who repaired the sink?", "--k", "1")
    first, second = (line.strip() for line in result.stdout.splitlines())
    assert re.fullmatch(r"1 \d\.\d\d Ben: Anna repaired the sink", first)
    assert second == "2026-03-02 00:00Z · episodic · importance 0.9 · id sink"


def test_json_carries_the_hits_with_their_memories_and_the_trace(kitchen):
    found = kitchen.json("search", "who repaired the sink?", "--k", "2")
    assert list(found) == ["query", "abstained", "order", "hits", "trace"]
    assert (found["abstained"], len(found["hits"])) == (False, 2)
    best = found["hits"][0]
    assert list(best) == ["id", "text", "score", "scores", "memory"]
    assert (best["id"], best["memory"]["producer"]) == ("sink", "Ben")
    assert found["trace"]["stages"][0].keys() == {
        "number", "name", "status", "reason", "candidates_in", "candidates_out",
        "milliseconds", "detail",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("", "--k", "2"), ["hands", "milk"]),
        (("kitchen", "--filter", "importance >= 0.8"), ["sink"]),
        (("kitchen", "--pool", "shared_rules"), ["hands"]),
        (("", "--filter", "id = 'milk'", "--now", "2091-01-01"), []),
    ],
)
def test_options_decide_what_is_found(kitchen, arguments, found):
    kitchen.run(
        "add", "Milk is fresh", "--id", "milk", "--at", "2026-03-04", "--expires-at", "2090-01-01"
    )
    kitchen.run(
        *("add", "Wash your hands", "--id", "hands", "--at", "2026-03-05"),
        *("--pool", "shared_rules"),
    )
    assert [hit["id"] for hit in kitchen.json("search", *arguments)["hits"]] == found


def test_an_argument_out_of_range_is_named_with_its_remedy(kitchen):
    assert kitchen.failure("search", "oven", "--min-score", "2") == (
        "min_score=2.0: must be between 0 and 1. Give a number from 0 to 1"
    )


def test_explain_draws_the_stages_and_the_raw_scores(kitchen):
    lines = kitchen.run("search", "the sink", "--preset", "rrf", "--explain").stdout.splitlines()
    title = next(line for line in lines if line.startswith("preset rrf: "))
    assert re.fullmatch(r"preset rrf: \d+ stages, \d+\.\d ms\s*", title)
    stage = next(line for line in lines if "search pools" in line)
    assert re.match(r"\s+4\s+search pools\s+0 → 3\s+\d+\.\d\s+ran\s+dense found 3", stage)
    header = next(line for line in lines if line.strip().startswith("#   cosine"))
    assert header.split() == [
        *("#", "cosine", "bm25", "lexical", "lexical_bound", "fused", "probability"),
        *("boost", "boost_importance", "boost_age", "id"),
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


def ids(listed):
    return [memory["id"] for memory in listed["memories"]]


def test_the_newest_memory_is_listed_first(kitchen):
    listed = kitchen.json("list")
    assert ids(listed) == ["knives", "sink", "oven"]
    assert (listed["total"], listed["offset"], listed["order"]) == (3, 0, "newest")


def test_a_page_of_the_list_says_how_to_go_on(kitchen):
    result = kitchen.run("list", "--limit", "1", "--offset", "1", "--order", "oldest")
    assert [line.strip() for line in result.stdout.splitlines()] == [
        "2  Ben: Anna repaired the sink",
        "2026-03-02 00:00Z · episodic · importance 0.9 · id sink",
    ]
    assert result.stderr == "2 to 2 of 3 memories; go on with --offset 2.\n"


def test_a_filter_narrows_the_list(kitchen):
    assert ids(kitchen.json("list", "--filter", "producer = 'Ben'")) == ["sink"]


def test_one_memory_is_shown_whole(kitchen):
    shown = dict(
        line.rstrip().split(maxsplit=1) for line in kitchen.run("get", "sink").stdout.splitlines()
    )
    assert shown.pop("created_at") > "2026"
    assert shown == {
        "id": "sink",
        "text": "Anna repaired the sink",
        "at": "2026-03-02T00:00:00+00:00",
        "pool": "agent_memory",
        "type": "episodic",
        "importance": "0.9",
        "producer": "Ben",
    }


def test_a_missing_id_is_an_error(kitchen):
    assert kitchen.failure("get", "attic") == (
        "id='attic': no such memory in this scope. "
        "List the scope's ids with `ekphory list`, or bind another scope."
    )


def test_the_history_holds_every_version_newest_first(kitchen):
    kitchen.run("update", "oven", "--text", "The oven works again")
    history = kitchen.json("history", "oven")
    assert [(each["id"], each["text"]) for each in history["versions"]] == [
        ("oven", "The oven works again"),
        ("oven~1", "The oven is broken"),
    ]
    assert [
        line.split()[:2] for line in kitchen.run("history", "oven").stdout.splitlines()[::2]
    ] == [
        ["2", "now"],
        ["1", "was"],
    ]


def test_a_misspelt_store_is_told_and_not_created(ekphory, tmp_path):
    sentence = ekphory.failure("list", "--store", str(tmp_path / "typo"))
    assert sentence.endswith(
        "there is no store. Make one with `ekphory add` or `ekphory import`, "
        "or name another with --store"
    )
    assert not (tmp_path / "typo").exists()


QUESTION = "Where was the father of Rembrandt's wife born?"
FACTS = {
    "wedding": "Rembrandt married Saskia van Uylenburgh in 1634.",
    "family": "Saskia's father was Rombertus van Uylenburgh, a mayor.",
    "born": "Rombertus van Uylenburgh was born in Bergum.",
}


@pytest.fixture
def told(ekphory):
    for name, text in FACTS.items():
        ekphory.run("add", text, "--id", name)
    return ekphory


def test_the_chain_is_shown_search_by_search_and_hop_by_hop(told):
    lines = told.run("ask", QUESTION, "--provider", "local").stdout.splitlines()
    assert lines[0].startswith(f"→ {QUESTION}")
    assert any(line.startswith("✓ wife of Rembrandt → Saskia van Uylenburgh") for line in lines)
    assert lines[-1].startswith("ChainOfQueryAgent, local")


def test_json_has_the_retrieval_trace(told):
    found = told.json("ask", QUESTION, "--provider", "local", "--stage-results", "trace")
    assert found["retrieval_trace"]["selected_agent"] == "coq"
    assert len(found["retrieval_trace"]["stage_results"]) == 3
    assert [hit["id"] for hit in found["hits"]] == ["wedding", "family", "born"]


def test_the_context_for_a_prompt_is_printed_alone(told):
    text = told.run("ask", QUESTION, "--provider", "local", "--answer-context").stdout
    assert text.startswith("<relevant-memories>")
    assert "hop 3" in text


def test_events_are_written_a_line_each(told, tmp_path):
    file = tmp_path / "events.jsonl"
    told.run("ask", QUESTION, "--provider", "local", "--events", str(file))
    kinds = [json.loads(line)["event_type"] for line in file.read_text("utf-8").splitlines()]
    assert (kinds[0], kinds[-1]) == ("session_started", "orchestration_completed")


def test_a_configuration_that_cannot_be_used_is_told_in_a_sentence(told, tmp_path):
    file = tmp_path / "cfg.yml"
    file.write_text("retrieval_agent: {llm_modell: a}", encoding="utf-8")
    result = told.run("ask", QUESTION, "--config", str(file))
    assert result.exit_code == 1
    assert "Did you mean 'llm_model'" in result.stderr


def longest_first(request):
    """Rate a passage by its length."""
    rows = [
        {"index": place, "relevance_score": min(len(text) / 100, 1.0)}
        for place, text in enumerate(request.body["documents"])
    ]
    return says({"results": rows})


@pytest.fixture
def reranker():
    with running_service(longest_first) as service:
        yield service


def stages(found):
    return {stage["name"]: stage for stage in found["trace"]["stages"]}


def test_a_search_is_reranked_by_the_service_that_is_named(kitchen, reranker):
    environment = {"EKPHORY_RERANKER": reranker.host, "EKPHORY_RERANKER_MODEL": "m-1"}
    found = kitchen.json(
        *("search", "and when?", "--preset", "accurate", "--now", "2026-06-01"),
        *("--context", "user: the oven broke", "--context", "assistant: oh no"),
        **environment,
    )
    assert stages(found)["rerank"]["status"] == "ran"
    assert reranker.bodies[0]["model"] == "m-1"
    assert reranker.bodies[0]["query"] == (
        "The dialogue so far:\nuser: the oven broke\nassistant: oh no\n"
        "Asked on 1 June 2026: and when?"
    )


def test_the_environment_names_the_preset_of_searches_that_name_none(kitchen, reranker):
    environment = {"EKPHORY_RERANKER": reranker.host, "EKPHORY_PRESET": "accurate"}
    assert stages(kitchen.json("search", "oven", **environment))["rerank"]["status"] == "ran"
    named = kitchen.json("search", "oven", "--preset", "fast", **environment)
    assert named["trace"]["preset"] == "fast"


def test_an_unknown_preset_is_told_before_anything_is_asked(kitchen):
    result = kitchen.run("search", "oven", EKPHORY_PRESET="acurate")
    assert result.exit_code == 1
    assert "Did you mean 'accurate'?" in result.stderr


def test_a_language_model_without_a_name_is_told(kitchen):
    result = kitchen.run("search", "oven", EKPHORY_CHAT_URL="http://127.0.0.1:9/v1")
    assert result.exit_code == 1
    assert "a chat service needs one" in result.stderr


def test_configurations_that_need_a_reranker_run_with_the_one_that_is_named(
    ekphory, reranker, tmp_path
):
    (tmp_path / "pets" / "qrels").mkdir(parents=True)
    passages = [{"_id": str(n), "title": "", "text": f"cat {n} " * (n + 1)} for n in range(5)]
    (tmp_path / "pets" / "corpus.jsonl").write_text(
        "".join(json.dumps(passage) + "\n" for passage in passages)
    )
    (tmp_path / "pets" / "queries.jsonl").write_text('{"_id": "q", "text": "a cat"}\n')
    (tmp_path / "pets" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t4\t1\n")
    measured = ekphory.run(
        *("eval", "beir", "--data", str(tmp_path / "pets"), "--configs", "H", "--json", "-"),
        EKPHORY_RERANKER=reranker.host,
    )
    reranked = json.loads(measured.stdout)["reports"][1]
    assert (reranked["system"], reranked["overall"]["scores"]["MRR"]["mean"]) == ("H", 1.0)


def test_a_reranker_may_be_a_directory(kitchen, tmp_path):
    write_overlap_reranker(tmp_path / "reranker")
    found = kitchen.json("search", "oven", EKPHORY_RERANKER=str(tmp_path / "reranker"))
    assert stages(found)["rerank"]["detail"]["reranker"] == "overlap"
