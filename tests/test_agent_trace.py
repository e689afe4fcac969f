"""Events: one record, told, written and read again."""

import json

from tests.agent.rembrandt import SINGLE, THREE_HOPS, records
from tests.cases import read_tables

from ekphory import agent_trace

BODIES = [
    agent_trace.SessionStarted(
        session_id="s", provider="local", query="\ud800", most_calls=3, timeout_seconds=9
    ),
    agent_trace.RouteChosen(route="coq", reason_code="chain", reason_note="why"),
    agent_trace.ToolReturned(
        call=1, query="q", status="success", summary="", memory_ids=("a", "b")
    ),
    agent_trace.HopResolved(
        branch=1, hop=1, query="q", answer="a", confidence=0.5, reason="r", memory_ids=("a",)
    ),
    agent_trace.FellBack(reason="global_timeout", problem="p"),
    agent_trace.SessionEnded(
        completed=False, response="r", sufficient=False, confidence=None, memories=1,
        rerank_applied=False,
    ),
]  # fmt: skip


def filled(listener=None):
    log = agent_trace.EventLog(listener)
    for body in BODIES:
        log.add(body)
    return log


def test_every_event_is_told_when_it_happens_and_is_a_line_of_json():
    told = []
    log = filled(told.append)
    assert told == log.events
    rows = [json.loads(line) for line in agent_trace.json_lines(log.events)]
    assert [row["event_type"] for row in rows] == [body.kind for body in BODIES]
    assert rows[0]["data"]["query"] == "\ud800"
    assert rows[2]["data"]["memory_ids"] == ["a", "b"]


def test_an_event_has_memmachines_four_fields():
    event = filled().events[1].to_dict()
    assert (event["step"], event["actor"], event["event_type"]) == (0, "top-level", "route_chosen")
    assert event["detail"] == "route=coq; reason_code=chain; reason_note=why; branches=1"


FIELDS = read_tables(__file__)


def test_a_chain_and_a_single_lookup_have_every_field_as_plain_data(memory):
    memory.add_many(records())
    traces = {
        question: memory.search(question, agent_mode=True).retrieval_trace.to_dict()
        for question in (SINGLE, THREE_HOPS)
    }
    assert set(traces[THREE_HOPS]) >= set(FIELDS["trace"])
    assert traces[THREE_HOPS]["agent"] == "RetrievalAgent"
    assert set(traces[SINGLE]) == set(traces[THREE_HOPS])
    assert json.loads(json.dumps(traces)) == traces
    # The way is told by both of its names.
    ways = [(trace["selected_agent"], trace["selected_agent_name"]) for trace in traces.values()]
    assert ways == [("memmachine_search", "MemMachineSearch"), ("coq", "ChainOfQueryAgent")]
    # The counts are those of the events.
    trace = traces[THREE_HOPS]
    inner = trace["orchestrator_trace"]
    assert trace["orchestrator_event_count"] == len(inner["events"])
    assert trace["memory_search_called"] == len(inner["tool_calls"])
    assert trace["orchestrator_step_count"] == inner["tool_calls"][-1]["step"]
    assert inner["tool_calls"][0]["arguments"] == {"query": THREE_HOPS}
    # The branch is told as a run of its own.
    (run,) = inner["sub_agent_runs"]
    assert set(run) == set(FIELDS["run"])
    assert (run["agent_name"], run["status"]) == ("coq", "success")
