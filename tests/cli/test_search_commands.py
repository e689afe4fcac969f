import json
import re

import pytest
from tests.models.tiny_rerankers import write_overlap_reranker
from tests.server.running import running_server

from ekphory.retrieval.presets import BALANCED
from services.wire import running_service, says

from .command_line import CommandLine


def test_hits_are_shown_with_their_speaker_and_what_they_are(kitchen):
    result = kitchen.run("search", "who repaired the sink?", "--k", "1")
    first, second = (line.strip() for line in result.stdout.splitlines())
    assert re.fullmatch(r"1 \d\.\d\d Ben: Anna repaired the sink", first)
    assert second == "2026-03-02 00:00Z · episodic · importance 0.9 · id sink"


def test_what_no_question_was_asked_for_has_no_probability(kitchen):
    assert kitchen.run("search", "", "--k", "1").stdout.startswith("1  Knives are in the drawer")


def test_an_answer_needs_a_question(kitchen):
    remedy = "Give one, or see the newest memories with ekphory list"
    assert kitchen.failure("ask", " ") == f"question=' ': is empty. {remedy}"


def test_json_has_the_hits_first_and_with_explain_the_trace(kitchen):
    question = ("search", "who repaired the sink?", "--k", "2")
    assert list(kitchen.json(*question)) == ["hits", "abstained", "order", "query"]
    found = kitchen.json(*question, "--explain")
    assert list(found)[-1] == "trace"
    assert (found["abstained"], len(found["hits"])) == (False, 2)
    best = found["hits"][0]
    assert list(best) == [
        "id", "text", "score", "scores", "memory", "superseded_by", "since",
    ]  # fmt: skip
    assert (best["id"], best["memory"]["producer"]) == ("sink", "Ben")
    assert found["trace"]["stages"][0].keys() == {
        "number", "name", "status", "reason", "candidates_in", "candidates_out",
        "milliseconds", "detail",
    }  # fmt: skip


def test_a_search_can_be_printed_as_the_block_of_a_prompt(kitchen):
    question = ("search", "who repaired the sink?", "--prompt", "--now", "2026-03-03")
    block = kitchen.run(*question).stdout
    assert "Anna repaired the sink" in block
    assert kitchen.json(*question)["text"] == block.rstrip("\n")
    assert kitchen.json(*question, "--max-tokens", "30")["text"] == ""


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--max-tokens", "800"], "max_tokens=800: limits the block of --prompt. Add --prompt"),
        (["--prompt", "--explain"], "explain=True: cannot be used with --prompt. Leave one out"),
        (["--prompt", "--max-tokens", "-1"], "max_tokens=-1: is out of range. Give at least 1"),
    ],
)
def test_an_option_that_would_be_ignored_or_cannot_be_is_refused(kitchen, options, told):
    assert kitchen.failure("search", "who repaired the sink?", *options) == told


def test_where_no_memory_fits_into_a_prompt_the_remedy_is_told(kitchen):
    shown = kitchen.run("search", "who repaired the sink?", "--prompt", "--max-tokens", "30")
    assert "No memory fits into 30 tokens. Give a larger --max-tokens." in shown.stderr
    assert not kitchen.run("search", "who repaired the sink?", "--prompt").stderr


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
    hands, milk = ("--id", "hands", "--at", "2026-03-05"), ("--id", "milk", "--at", "2026-03-04")
    kitchen.run("add", "Milk is fresh", *milk, "--expires-at", "2090-01-01")
    kitchen.run("add", "Wash your hands", *hands, "--pool", "shared_rules")
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
    assert re.match(r"\s+3\s+search pools\s+0 → 3\s+\d+\.\d\s+ran\s+dense found 3", stage)
    header = next(line for line in lines if line.strip().startswith("#   cosine"))
    names = "# cosine bm25 lexical lexical_bound fused probability boost boost_importance boost_age"
    assert header.split() == names.split()


def test_explain_numbers_the_stages_once_each_in_the_order_in_which_they_ran(kitchen):
    lines = kitchen.run("search", "the sink", "--explain").stdout.splitlines()
    stages = lines[: next(place for place, line in enumerate(lines) if line.startswith("scores"))]
    numbers = [found[1] for line in stages if (found := re.match(r"\s{1,3}(\d+)   \w", line))]
    assert numbers == [str(number) for number in range(1, len(BALANCED.stages) + 1)]


def test_explain_and_pipeline_show_count_the_same_stages(kitchen):
    shown = kitchen.run("pipeline", "show", "balanced").stdout
    told = kitchen.run("search", "the sink", "--explain").stdout
    counted = f"preset balanced: {len(BALANCED.stages)} stages"
    assert counted in shown
    assert f"{counted}, " in told


def test_nothing_found_is_an_empty_result_and_no_error(ekphory):
    ekphory.run("add", "The oven is broken", "--project", "kitchen")
    search = ("search", "oven", "--project", "garden")
    result = ekphory.run(*search)
    said = "No memory matches. There are no memories of project='garden' in this store.\n"
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", said)
    assert ekphory.json(*search)["hits"] == []
    assert "skipped   no memory is visible" in ekphory.run(*search, "--explain").stdout


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


def test_the_newest_memory_is_listed_first_and_a_filter_narrows_the_list(kitchen):
    listed = kitchen.json("list")
    assert ids(listed) == ["knives", "sink", "oven"]
    assert (listed["total"], listed["offset"], listed["order"]) == (3, 0, "newest")
    assert ids(kitchen.json("list", "--filter", "producer = 'Ben'")) == ["sink"]


def test_a_page_of_the_list_says_how_to_go_on(kitchen):
    result = kitchen.run("list", "--limit", "1", "--offset", "1", "--order", "oldest")
    assert [line.strip() for line in result.stdout.splitlines()] == [
        "2  Ben: Anna repaired the sink",
        "2026-03-02 00:00Z · episodic · importance 0.9 · id sink",
    ]
    assert result.stderr == "2 to 2 of 3 memories; go on with --offset 2.\n"


def test_one_memory_is_shown_whole(kitchen):
    lines = kitchen.run("get", "sink").stdout.splitlines()
    shown = dict(line.rstrip().split(maxsplit=1) for line in lines)
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
    versions = kitchen.json("history", "oven")["versions"]
    assert [(each["id"], each["text"]) for each in versions] == [
        ("oven", "The oven works again"),
        ("oven~1", "The oven is broken"),
    ]
    lines = kitchen.run("history", "oven").stdout.splitlines()[::2]
    assert [line.split()[:2] for line in lines] == [["2", "now"], ["1", "was"]]


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


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    command_line = CommandLine(tmp_path_factory.mktemp("told") / "store")
    for name, text in FACTS.items():
        command_line.run("add", text, "--id", name)
    return command_line


ASK = ("ask", QUESTION, "--provider", "local")


def test_the_chain_is_shown_search_by_search_and_hop_by_hop_and_written_as_events(told, tmp_path):
    file = tmp_path / "events.jsonl"
    lines = told.run(*ASK, "--events", str(file)).stdout.splitlines()
    assert lines[0].startswith(f"→ {QUESTION}")
    assert any(line.startswith("✓ wife of Rembrandt → Saskia van Uylenburgh") for line in lines)
    assert lines[-1].startswith("ChainOfQueryAgent, local")
    kinds = [json.loads(line)["event_type"] for line in file.read_text("utf-8").splitlines()]
    assert (kinds[0], kinds[-1]) == ("session_started", "orchestration_completed")


@pytest.mark.slow
def test_a_server_is_asked_with_the_agent_that_it_is_configured_for(ekphory, tmp_path):
    with running_server(tmp_path / "served") as server:
        ekphory.run("add", "Mara lives in Porto", EKPHORY_STORE=server.url)
        told = ekphory.run("ask", "Where does Mara live?", EKPHORY_STORE=server.url)
    assert "Mara lives in Porto" in told.stdout


def test_what_likely_does_not_answer_is_told_as_such(told):
    lines = told.run("ask", "What is the capital of Peru?", "--provider", "local").stdout
    assert "? What is the capital of Peru?" in lines
    assert "✓ What is the capital of Peru?" not in lines
    assert "\nWhat was found likely does not answer the question.\n" in lines
    assert "likely does not answer" not in told.run(*ASK).stdout


def test_a_list_of_nothing_says_that_there_is_nothing(ekphory):
    ekphory.run("add", "The oven is broken", "--id", "oven")
    told = ekphory.run("list", "--filter", "id = 'sink'").stderr
    assert told == "No memory matches.\n"
    ekphory.run("forget", "oven")
    assert ekphory.run("list").stderr == "There are no memories in this store.\n"


def test_asking_where_nothing_is_names_the_scope(told):
    said = told.run("ask", "Where is it?", "--provider", "local", "--project", "garden").stderr
    assert said == "No memory matches. There are no memories of project='garden' in this store.\n"


def test_json_has_the_retrieval_trace(told):
    found = told.json(*ASK, "--stage-results", "trace")
    assert found["retrieval_trace"]["selected_agent"] == "coq"
    assert len(found["retrieval_trace"]["stage_results"]) == 3
    assert [hit["id"] for hit in found["hits"]] == ["wedding", "family", "born"]


def test_the_context_for_a_prompt_is_printed_alone(told):
    text = told.run(*ASK, "--answer-context").stdout
    assert text.startswith("<relevant-memories>")
    assert "hop 3" in text


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("EKPHORY_PRESET", "acurate", "Did you mean 'accurate'?"),
        ("EKPHORY_CHAT_URL", "http://127.0.0.1:9/v1", "a chat service needs one"),
        ("EKPHORY_CONFIG", "cfg.yml", "Did you mean 'llm_model'"),
    ],
)
def test_a_setting_that_cannot_be_used_is_told_before_anything_is_asked(
    told, tmp_path, monkeypatch, variable, value, said
):
    (tmp_path / "cfg.yml").write_text("retrieval_agent: {llm_modell: a}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    result = told.run(*ASK[:2], **{variable: value})
    assert result.exit_code == 1
    assert said in result.stderr


def longest_first(request):
    """Rate a passage by its length."""
    texts = enumerate(request.body["documents"])
    rows = [{"index": n, "relevance_score": min(len(text) / 100, 1.0)} for n, text in texts]
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
        *("search", "and when?", "--preset", "accurate", "--now", "2026-06-01", "--explain"),
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
    found = kitchen.json("search", "oven", "--explain", **environment)
    assert stages(found)["rerank"]["status"] == "ran"
    named = kitchen.json("search", "oven", "--preset", "fast", "--explain", **environment)
    assert named["trace"]["preset"] == "fast"


def test_a_reranker_may_be_a_directory(kitchen, tmp_path):
    write_overlap_reranker(tmp_path / "reranker")
    found = kitchen.json("search", "oven", "--explain", EKPHORY_RERANKER=str(tmp_path / "reranker"))
    assert stages(found)["rerank"]["detail"]["reranker"] == "overlap"


def test_what_is_like_a_memory_is_listed_without_itself(kitchen):
    found = kitchen.json("related", "sink", "--k", "2")
    assert found["id"] == "sink"
    assert len(found["memories"]) == 2
    assert "sink" not in [each["id"] for each in found["memories"]]
    assert "Anna repaired the sink" not in kitchen.run("related", "sink", "--k", "1").stdout
    assert "no such memory" in kitchen.failure("related", "nothing")


def test_the_gate_of_a_preset_is_told(kitchen):
    shown = kitchen.run("gate-status", "--preset", "memory_spark").stdout
    assert shown.startswith("memory_spark has the gate hard")
    assert kitchen.json("gate-status")["mode"] is None
