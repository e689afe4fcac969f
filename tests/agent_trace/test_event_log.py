"""Events: one record, told, written and read again."""

import pytest

from ekphory.agent_trace import (
    EventLog,
    FellBack,
    HopResolved,
    RouteChosen,
    SessionEnded,
    SessionStarted,
    ToolReturned,
    json_lines,
    read_events,
)
from ekphory.errors import InvalidInput

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


def test_every_event_is_told_when_it_happens():
    told = []
    log = filled(told.append)
    assert told == log.events


def test_events_are_read_back_from_their_lines(tmp_path):
    log = filled()
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(json_lines(log.events)) + "\n", encoding="utf-8")
    assert [event.body for event in read_events(file)] == BODIES


def test_an_event_has_memmachines_four_fields():
    event = filled().events[1].to_dict()
    assert (event["step"], event["actor"], event["event_type"]) == (0, "top-level", "route_chosen")
    assert event["detail"] == "route=coq; reason_code=chain; reason_note=why; branches=1"


@pytest.mark.parametrize("line", ["{", "{}", '{"event_type": "no_such", "data": {}}'])
def test_a_line_that_is_no_event_is_refused_by_its_number(tmp_path, line):
    file = tmp_path / "events.jsonl"
    file.write_text(line, encoding="utf-8")
    with pytest.raises(InvalidInput, match="line 1 must be an event"):
        read_events(file)
