"""Events: one record, told, written and read again."""

import json

import pytest
from tests.agent.rembrandt import SINGLE, THREE_HOPS, records

from ekphory.agent_trace import (
    EventLog,
    FellBack,
    HopResolved,
    RouteChosen,
    SessionEnded,
    SessionStarted,
    ToolReturned,
    json_lines,
)
from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder

BODIES = [
    SessionStarted(
        session_id="s", provider="local", query="\ud800", most_calls=3, timeout_seconds=9
    ),
    RouteChosen(route="coq", reason_code="chain", reason_note="why"),
    ToolReturned(call=1, query="q", status="success", summary="", memory_ids=("a", "b")),
    HopResolved(
        branch=1, hop=1, query="q", answer="a", confidence=0.5, reason="r", memory_ids=("a",)
    ),
    FellBack(reason="global_timeout", problem="p"),
    SessionEnded(
        completed=False, response="r", sufficient=False, confidence=None, memories=1,
        rerank_applied=False,
    ),
]  # fmt: skip


def filled(listener=None):
    log = EventLog(listener)
    for body in BODIES:
        log.add(body)
    return log


def test_every_event_is_told_when_it_happens_and_is_a_line_of_json():
    told = []
    log = filled(told.append)
    assert told == log.events
    rows = [json.loads(line) for line in json_lines(log.events)]
    assert [row["event_type"] for row in rows] == [body.kind for body in BODIES]
    assert rows[0]["data"]["query"] == "\ud800"
    assert rows[2]["data"]["memory_ids"] == ["a", "b"]


def test_an_event_has_memmachines_four_fields():
    event = filled().events[1].to_dict()
    assert (event["step"], event["actor"], event["event_type"]) == (0, "top-level", "route_chosen")
    assert event["detail"] == "route=coq; reason_code=chain; reason_note=why; branches=1"


SEED = {
    "selected_agent", "selected_agent_name", "memory_search_called", "orchestrator_step_count",
    "orchestrator_trace",
}  # fmt: skip
COUNTERS = {
    "route", "selected_route", "confidence_score", "reason_code", "reason_note",
    "top_level_session_invocation_count", "top_level_session_turn_count",
    "top_level_llm_call_count", "top_level_input_token", "top_level_output_token",
    "orchestrator_event_count", "orchestrator_tool_call_count", "orchestrator_sub_agent_count",
    "orchestrator_episode_count", "orchestrator_completed", "orchestrator_state_snapshot",
    "orchestrator_final_response", "orchestrator_sub_agent_runs", "llm_call_count", "input_token",
    "output_token", "tool_select_llm_call_count", "tool_select_input_token",
    "tool_select_output_token", "branch_total", "branch_success_count", "branch_failure_count",
    "branch_retry_count", "rerank_applied", "final_episode_count",
}  # fmt: skip
RUN = {
    "step", "agent_name", "query", "status", "fallback_trigger_reason", "tool_calls",
    "llm_call_count", "llm_input_tokens", "llm_output_tokens", "llm_time", "episodes_returned",
    "branch_total", "branch_success_count", "branch_failure_count", "branch_retry_count",
    "normalization_warnings",
}  # fmt: skip


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    with Memory(tmp_path_factory.mktemp("facts"), embedder=HashEmbedder()) as memory:
        memory.add_many(records())
        yield {
            question: memory.search(question, agent_mode=True).retrieval_trace.to_dict()
            for question in (SINGLE, THREE_HOPS)
        }


def test_a_chain_and_a_single_lookup_have_every_field_as_plain_data(traces):
    assert set(traces[THREE_HOPS]) >= SEED | COUNTERS
    assert traces[THREE_HOPS]["agent"] == "RetrievalAgent"
    assert set(traces[SINGLE]) == set(traces[THREE_HOPS])
    assert json.loads(json.dumps(traces)) == traces


def test_the_way_is_told_by_both_of_its_names(traces):
    ways = [(trace["selected_agent"], trace["selected_agent_name"]) for trace in traces.values()]
    assert ways == [("memmachine_search", "MemMachineSearch"), ("coq", "ChainOfQueryAgent")]


def test_the_counts_are_those_of_the_events(traces):
    trace = traces[THREE_HOPS]
    inner = trace["orchestrator_trace"]
    assert trace["orchestrator_event_count"] == len(inner["events"])
    assert trace["memory_search_called"] == len(inner["tool_calls"])
    assert trace["orchestrator_step_count"] == inner["tool_calls"][-1]["step"]
    assert inner["tool_calls"][0]["arguments"] == {"query": THREE_HOPS}


def test_the_branch_is_told_as_a_run_of_its_own(traces):
    (run,) = traces[THREE_HOPS]["orchestrator_trace"]["sub_agent_runs"]
    assert set(run) == RUN
    assert (run["agent_name"], run["status"]) == ("coq", "success")
