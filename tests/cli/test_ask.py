"""`ekphory ask`: the chain as it grows, and what a program gets."""

import json

import pytest

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
