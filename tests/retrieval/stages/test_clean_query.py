"""Stage 1 removes what a host has put around a query, and says so in the trace."""

import json

from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.stages.query import CleanQuery
from retrieval.states import state_of


def test_wrapping_is_removed_from_the_text_and_counted_in_the_notes():
    state = CleanQuery().run(state_of(query="[Mon 2026-11-02 10:15 UTC] Who  sang? <!-- a -->"))
    assert state.text == "Who sang?"
    assert state.notes == {
        "characters_removed": 39,
        "removed": {
            "comment": {"count": 1, "characters": 10},
            "timestamp": {"count": 1, "characters": 27},
        },
        "kept_as_given": False,
    }


def test_the_query_as_given_stays_in_the_request():
    state = CleanQuery().run(state_of(query="NO_REPLY\nWho sang?"))
    assert state.request.query == "NO_REPLY\nWho sang?"


def test_the_query_is_folded_and_its_end_is_kept():
    state = CleanQuery(longest=9).run(state_of(query="  Who   sang\n\tthe song? "))
    assert state.text == "the song?"
    assert state.notes["characters_removed"] == 15


def test_nothing_but_wrapping_is_searched_itself_and_the_notes_say_so():
    state = CleanQuery().run(state_of(query="HEARTBEAT_OK"))
    assert state.text == "HEARTBEAT_OK"
    assert state.notes["kept_as_given"] is True


def test_the_trace_is_plain_data_without_the_text():
    _, trace = Pipeline("mine", [CleanQuery()]).run(state_of(query="<!-- secret --> Who sang?"))
    written = json.dumps(trace.to_dict())
    assert '"comment": {"count": 1, "characters": 15}' in written
    assert "secret" not in written
