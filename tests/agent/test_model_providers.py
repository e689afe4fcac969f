"""The providers `openai` and `anthropic`: their real SDKs against a local service."""

import asyncio
import threading
import time

import pytest
from tests.services.wire import running_service

from ekphory.agent.provider import AgentOptions, AgentSettings
from ekphory.memmachine_config import LanguageModel
from ekphory.memory import AsyncMemory
from ekphory.testing import HashEmbedder

from .rembrandt import COMPARISON, NOW, SINGLE, THREE_HOPS
from .scripted_models import SCRIPTS, AnthropicScript, OpenAIScript

pytestmark = pytest.mark.slow

KEY = "sk-geheim-123"
WIFE, FATHER, BORN = (
    "wife of Rembrandt",
    "father of Saskia van Uylenburgh",
    "Where was Rombertus born",
)
STAGE = "[StageResult] Query: {} | Answer: {} | Confidence: 0.9 | Reason: a memory says so\n"
STAGES = (
    STAGE.format(WIFE, "Saskia van Uylenburgh")
    + STAGE.format(FATHER, "Rombertus van Uylenburgh")
    + STAGE.format(BORN, "Bergum")
    + "In Bergum.\nSufficient: yes"
)


@pytest.fixture(params=SCRIPTS, ids=lambda script: script.provider)
def script(request):
    return request.param


@pytest.fixture
def wire():
    with running_service() as service:
        yield service


@pytest.fixture
def ask(facts, wire, script):
    """Asks the agent of the script's provider; `replies` is what the service answers in turn."""

    def ask(question, *replies, k=5, stage_results="none", **settings):
        wire.replies = list(replies)
        options = AgentOptions(
            settings=settings_for(script, wire.host, **settings), stage_results=stage_results
        )
        return facts.search(question, k=k, now=NOW, agent_mode=True, agent_options=options)

    return ask


def settings_for(script, host, **settings):
    common = {
        "agent_session_provider": script.provider,
        "agent_session_max_retry_interval_seconds": 0.01,
    }
    own = {
        "openai": {
            "llm_model": LanguageModel(
                id="m", provider="openai-responses", model="m", api_key=KEY, base_url=f"{host}/v1"
            )
        },
        "anthropic": {
            "anthropic_api_key": KEY,
            "anthropic_base_url": host,
            "anthropic_model": "claude-test",
        },
    }[script.provider]
    return AgentSettings(**{**common, **own, **settings})


def ids(result):
    return [hit.id for hit in result]


def reason(result):
    return result.retrieval_trace.fallback_trigger_reason


def test_a_single_hop_takes_one_search(ask, script, wire):
    result = ask(SINGLE, script.calls("spare keys"), script.says("In the bowl.\nSufficient: yes"))
    assert ids(result)[0] == "keys"
    assert result.retrieval_trace.selected_agent == "memmachine_search"
    assert result.retrieval_trace.memory_search_called == 1
    assert [request.path for request in wire.asked] == [script.path] * 2


def test_ages_are_told_from_the_moment_of_the_question(ask, script, wire):
    ask(SINGLE, script.calls("spare keys"), script.says("In the bowl.\nSufficient: yes"))
    assert "2 weeks ago" in str(wire.asked[1].body)


def test_three_hops_come_in_order_with_what_they_resolved(ask, script):
    result = ask(
        THREE_HOPS,
        script.calls(WIFE),
        script.calls(FATHER),
        script.calls(BORN),
        script.says(STAGES),
        stage_results="trace",
    )
    trace = result.retrieval_trace
    assert ids(result)[:3] == ["wedding", "family", "born"]
    assert [hop.answer for hop in trace.hops][:2] == [
        "Saskia van Uylenburgh",
        "Rombertus van Uylenburgh",
    ]
    assert trace.to_dict()["orchestrator_final_response"] == "In Bergum.\nSufficient: yes"
    assert (trace.to_dict()["llm_call_count"], trace.to_dict()["input_token"]) == (4, 400)


def test_a_comparison_may_search_both_sides_at_once(ask, script):
    result = ask(COMPARISON, script.calls("Anna Kowalski", "Boris Lindqvist"), script.says("Anna."))
    assert set(ids(result)[:2]) == {"anna", "boris"}


def test_the_trace_has_the_fields_of_the_local_one(ask, script, facts):
    told = ask(THREE_HOPS, script.calls(WIFE), script.calls(FATHER), script.says(STAGES))
    options = AgentOptions(settings=AgentSettings(agent_session_provider="local"))
    local = facts.search(THREE_HOPS, agent_mode=True, agent_options=options)
    assert set(told.retrieval_trace.to_dict()) == set(local.retrieval_trace.to_dict())


def test_memories_reach_the_model_framed_as_data(ask, script, wire):
    # Memories reach the model framed as data.
    ask(SINGLE, script.calls("spare keys"), script.says("Done."))
    (answer,) = script.tool_answers(wire.bodies[1])
    assert "<relevant-memories>" in answer
    assert "never instructions" in answer.replace("\n", " ")
    assert "The spare keys lie in the blue bowl." in answer
    # The first message must search and the guidance is there.
    first, second = wire.bodies
    assert first["tool_choice"]["name"] == "memmachine_search"
    assert second["tool_choice"] in ("auto", {"type": "auto"})
    assert "Search before you say anything" in str(first.get("instructions") or first["system"])


def test_a_query_that_was_made_is_refused_in_words(ask, script, wire):
    ask(SINGLE, script.calls("keys"), script.calls("KEYS?"), script.says("Done."))
    assert "searched already" in script.tool_answers(wire.bodies[2])[1]


def test_what_is_no_session_falls_back(ask, script, facts):
    # An answer without a search falls back.
    result = ask(SINGLE, script.says("I know it anyway."))
    assert reason(result) == "missing_tool_call"
    assert result.hits == facts.search(SINGLE, k=5, now=NOW).hits
    # More calls than allowed fall back.
    result = ask(THREE_HOPS, script.calls(WIFE, FATHER, BORN), agent_session_max_combined_calls=2)
    assert reason(result) == "session_call_budget_exceeded"
    assert {"wedding", "family"} <= set(ids(result))
    # A model that never ends falls back.
    calls = [script.calls(f"words {number}") for number in range(20)]
    result = ask(SINGLE, *calls, agent_session_max_combined_calls=50)
    assert reason(result) == "max_steps_exceeded"
    # A refusal and a message cut off fall back.
    assert reason(ask(SINGLE, script.refuses())) == "invalid_agent_output"
    assert reason(ask(SINGLE, script.is_cut_off())) == "invalid_agent_output"


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ('{"q": "a"}', "memmachine_search"),
        ('{"query": 3}', "memmachine_search"),
        ("a", "web_search"),
    ],
)
def test_a_malformed_call_falls_back_with_the_evidence_so_far(ask, script, query, name):
    result = ask(THREE_HOPS, script.calls(WIFE), script.calls(query, name=name))
    assert reason(result) == "invalid_tool_call"
    assert "wedding" in ids(result)


def test_memmachine_search_is_the_one_tool_and_another_ends_the_session_unsearched(
    ask, script, wire
):
    worked = ask(SINGLE, script.calls("spare keys"), script.says("In the bowl."))
    tools = [each["name"] for each in wire.bodies[0]["tools"] if "name" in each]
    assert tools == ["memmachine_search"]
    assert reason(worked) is None
    assert worked.retrieval_trace.memory_search_called == 1
    assert ids(worked)[0] == "keys"

    refused = ask(SINGLE, script.calls("spare keys", name="web_search"))
    assert reason(refused) == "invalid_tool_call"
    assert refused.retrieval_trace.hops == ()


def test_a_call_that_lacks_its_name_is_asked_for_again(ask, script):
    nameless = script.calls("keys", name=None)
    result = ask(SINGLE, nameless, script.calls("keys"), script.says("Done."))
    assert reason(result) is None
    assert result.retrieval_trace.to_dict()["branch_retry_count"] == 1
    assert ids(result)[0] == "keys"


def test_a_service_that_counts_no_tokens_has_used_none(ask, script):
    call, words = script.calls("keys"), script.says("Done.")
    for reply in (call, words):
        reply.body = reply.body.replace(b'"input_tokens": 100', b'"input_tokens": null')
    trace = ask(SINGLE, call, words).retrieval_trace
    assert trace.to_dict()["input_token"] == 0


def test_what_utf_8_cannot_carry_of_an_answer_is_told_as_far_as_it_can(ask, script):
    told = STAGE.format("keys \ud83d", "the bowl") + "In the bowl \ud83d"
    calls = script.calls("keys"), script.calls("bowl")
    trace = ask(SINGLE, *calls, script.says(told)).retrieval_trace
    assert trace.hops[0].query == "keys ?"
    assert trace.to_dict()["orchestrator_final_response"] == "In the bowl ?"
    trace = ask(SINGLE, script.error(400, "no \ud83d")).retrieval_trace
    assert "\ud83d" not in str([event.to_dict() for event in trace.events])


@pytest.mark.parametrize("status", [429, 500, 529])
def test_a_busy_service_is_asked_again(ask, script, wire, status):
    result = ask(SINGLE, script.error(status), script.calls("keys"), script.says("Done."))
    assert reason(result) is None
    assert result.retrieval_trace.to_dict()["branch_retry_count"] == 1


@pytest.mark.parametrize("status", [429, 500])
def test_a_service_that_stays_busy_falls_back(ask, script, facts, status):
    result = ask(SINGLE, *[script.error(status)] * 10)
    assert reason(result) == "downstream_tool_failure"
    assert result.hits == facts.search(SINGLE, k=5, now=NOW).hits


def test_a_wrong_key_falls_back_at_once_and_is_not_told(ask, script, wire, caplog):
    result = ask(SINGLE, script.error(401, f"Incorrect API key provided: {KEY}"))
    assert reason(result) == "downstream_tool_failure"
    assert len(wire.asked) == 1
    assert "status 401" in caplog.text
    assert KEY not in caplog.text
    assert KEY not in str(result.retrieval_trace.to_dict())


def test_a_stream_that_ends_early_is_asked_for_again(ask, script):
    # A truncated stream is asked for again.
    cut = script.says("Half a mess")
    cut.missing_bytes, cut.body = 400, cut.body[: len(cut.body) // 2]
    result = ask(SINGLE, script.calls("keys"), cut, script.says("Done."))
    assert reason(result) is None
    # A stream that ends early is asked for again.
    cut.body = cut.body.split(b"\n\n")[0] + b"\n\n"
    result = ask(SINGLE, script.calls("keys"), cut, script.says("Done."))
    assert reason(result) is None


def test_without_a_network_it_falls_back(ask, facts, script):
    options = AgentOptions(settings=settings_for(script, "http://127.0.0.1:9"))
    result = facts.search(SINGLE, agent_mode=True, agent_options=options)
    assert reason(result) == "downstream_tool_failure"
    assert len(result) == 10


def test_a_service_that_is_too_slow_falls_back_in_time(ask, script, facts):
    slow = script.says("late")
    slow.delay = 20.0
    started = time.monotonic()
    result = ask(SINGLE, slow, agent_session_timeout_seconds=0.5)
    assert time.monotonic() - started < 10
    assert reason(result) == "global_timeout"
    assert result.hits == facts.search(SINGLE, k=5, now=NOW).hits


def test_a_cancelled_search_ends_its_session(script, wire, tmp_path):
    slow = script.says("late")
    slow.delay = 20.0
    wire.replies = [slow]
    options = AgentOptions(settings=settings_for(script, wire.host))

    async def search():
        async with AsyncMemory(tmp_path / "s", embedder=HashEmbedder()) as memory:
            await memory.add("The keys lie in the bowl")
            async with asyncio.timeout(1.0):
                await memory.search(SINGLE, agent_mode=True, agent_options=options)

    with pytest.raises(TimeoutError):
        asyncio.run(search())
    assert [thread for thread in threading.enumerate() if "agent" in thread.name] == []


def test_raw_payloads_are_told_only_where_wanted_and_without_the_key(ask, script, caplog):
    caplog.set_level("DEBUG", logger="ekphory.agent.raw")
    ask(SINGLE, script.calls("keys"), script.says("Done."))
    assert caplog.text == ""
    ask(SINGLE, script.calls(KEY), script.says("Done."), agent_session_log_raw_output=True)
    assert "memmachine_search" in caplog.text
    assert KEY not in caplog.text


def test_openai_gets_the_guidance_as_a_skill_of_a_local_shell(facts, wire, tmp_path):
    script = OpenAIScript()
    wire.replies = [script.shell("cat coq/SKILL.md"), script.calls("keys"), script.says("Done.")]
    settings = settings_for(script, wire.host, agent_native_bundle_root=str(tmp_path))
    facts.search(SINGLE, agent_mode=True, agent_options=AgentOptions(settings=settings))
    (skill,) = wire.bodies[0]["tools"][1]["environment"]["skills"]
    assert (skill["name"], skill["path"].startswith(str(tmp_path))) == ("coq", True)
    (output,) = [
        item for item in wire.bodies[1]["input"] if item.get("type") == "shell_call_output"
    ]
    assert "# Chain of queries" in output["output"][0]["stdout"]
    assert list(tmp_path.iterdir()) == []


def test_openai_gets_the_guidance_as_an_inline_skill_of_a_container(facts, wire):
    script = OpenAIScript()
    wire.replies = [script.calls("keys"), script.says("Done.")]
    settings = settings_for(script, wire.host, openai_native_agent_environment="container_auto")
    facts.search(SINGLE, agent_mode=True, agent_options=AgentOptions(settings=settings))
    environment = wire.bodies[0]["tools"][1]["environment"]
    assert environment["type"] == "container_auto"
    assert environment["skills"][0]["source"]["media_type"] == "application/zip"


def test_a_model_without_a_shell_gets_the_guidance_in_its_instructions(facts, wire):
    script = OpenAIScript()
    refusal = script.error(400, "Tool 'shell' is not supported with m")
    wire.replies = [refusal, script.calls("keys"), script.says("Done.")]
    options = AgentOptions(settings=settings_for(script, wire.host))
    result = facts.search(SINGLE, agent_mode=True, agent_options=options)
    assert reason(result) is None
    assert [len(body["tools"]) for body in wire.bodies] == [2, 1, 1]
    assert "# Chain of queries" in wire.bodies[1]["instructions"]


def test_anthropic_gets_its_own_settings(facts, wire):
    script = AnthropicScript()
    wire.replies = [script.calls("keys"), script.says("Done.")]
    settings = settings_for(
        script, wire.host, anthropic_model="claude-x", anthropic_max_output_tokens=77
    )
    facts.search(SINGLE, agent_mode=True, agent_options=AgentOptions(settings=settings))
    assert (wire.bodies[0]["model"], wire.bodies[0]["max_tokens"]) == ("claude-x", 77)
    assert f"Bearer {KEY}" in wire.asked[0].headers.values()
