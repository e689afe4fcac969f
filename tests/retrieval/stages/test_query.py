"""Stage 1 removes what a host has put around a query, and says so in the trace."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import read_cases

from ekphory.errors import ServiceError
from ekphory.retrieval.pipeline import Pipeline, QueryClass, QueryHints
from ekphory.retrieval.query import ClassifyQuery, CleanQuery
from ekphory.retrieval.stages.widen import (
    ExpandQuery,
    Hyde,
    read_wordings,
    usable_document,
    wording_prompt,
)
from ekphory.testing import HashEmbedder, ScriptedChat
from retrieval.states import records, state_of

CASES = read_cases(__file__)


def test_what_a_host_put_around_a_query_is_removed_and_counted_in_the_notes():
    # Wrapping is removed from the text and counted in the notes.
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
    # The query is folded and its end is kept.
    state = CleanQuery(longest=9).run(state_of(query="  Who   sang\n\tthe song? "))
    assert state.text == "the song?"
    assert state.notes["characters_removed"] == 15
    # Nothing but wrapping is searched itself and the notes say so.
    state = CleanQuery().run(state_of(query="HEARTBEAT_OK"))
    assert state.text == "HEARTBEAT_OK"
    assert state.notes["kept_as_given"] is True


def test_the_trace_is_plain_data_without_the_text():
    _, trace = Pipeline("mine", [CleanQuery()]).run(state_of(query="<!-- secret --> Who sang?"))
    written = json.dumps(trace.to_dict())
    assert '"comment": {"count": 1, "characters": 15}' in written
    assert "secret" not in written


def test_the_cleaned_text_is_classified_for_later_stages_and_the_trace():
    # Later stages find the class in the state.
    state = ClassifyQuery().run(state_of(query="How do I prune the vine?"))
    assert state.query_class == QueryClass(
        "procedural", 0.0, ("asks how to",), QueryHints(procedural=0.9)
    )
    # The cleaned text is classified.
    pipeline = Pipeline("mine", [CleanQuery(), ClassifyQuery()])
    state, _ = pipeline.run(state_of(query="<!-- how do I compare --> Where is the ladder?"))
    assert state.query_class.intent == "lookup"
    # The trace says what was found by which rules.
    pipeline = Pipeline("mine", [CleanQuery(), ClassifyQuery()])
    _, trace = pipeline.run(state_of(query="Is the tram cheaper than the taxi?"))
    assert (trace.stages[1].number, trace.stages[1].name) == (1, "classify query")
    assert trace.stages[1].detail == {
        "intent": "comparison",
        "complexity": 0.0,
        "signals": ["asks for more or less"],
        "hints": {},
        "depth_factor": 1.5,
    }
    assert "tram" not in json.dumps(trace.to_dict())


QUERY = "When does the staging key rotate?"
DOCUMENT = "The staging key rotates every Monday at nine in the morning after the backup."
REFUSED = ServiceError("https://chat.example: refused the connection")


def state(*answers, query=QUERY):
    return state_of(*records("a"), query=query, chat=ScriptedChat(answers))


def embedded(text):
    return HashEmbedder().encode([text])[0]


def test_the_search_is_between_document_and_query_or_by_the_document_alone():
    # The document may replace the query.
    found = Hyde(use="replace").run(state(DOCUMENT))
    assert found.vector.tolist() == embedded(DOCUMENT).tolist()
    assert found.notes == {"use": "replace", "model": "scripted-chat"}
    # By default the search is between document and query.
    between = embedded(DOCUMENT) + embedded(QUERY)
    vector = Hyde().run(state(DOCUMENT)).vector
    assert vector.tolist() == pytest.approx((between / np.linalg.norm(between)).tolist(), abs=1e-6)
    assert float(np.linalg.norm(vector)) == pytest.approx(1.0, abs=1e-6)
    # Junk is asked for again.
    found = Hyde(use="replace").run(state("I cannot.", DOCUMENT))
    assert found.vector is not None
    assert len(found.resources.chat.asked) == 2


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (("I cannot.", "junk"), "scripted-chat gave no usable document"),
        ((REFUSED,), "scripted-chat: https://chat.example: refused the connection"),
    ],
)
def test_without_a_document_the_query_is_searched_plainly_and_the_stage_is_degraded(
    answers, reason
):
    found = Hyde().run(state(*answers))
    assert (found.vector, found.degraded) == (None, reason)


def test_other_wordings_are_searched_too():
    found = ExpandQuery().run(state("1. staging key rotation\n2. rotation day of the key"))
    assert found.wordings == ("staging key rotation", "rotation day of the key")
    assert found.notes == {"wordings": 2, "model": "scripted-chat"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("Here are some:", "scripted-chat gave no usable wording"),
        (REFUSED, "scripted-chat: https://chat.example: refused the connection"),
    ],
)
def test_without_a_wording_the_query_alone_is_searched_and_the_stage_is_degraded(answer, reason):
    found = ExpandQuery().run(state(answer))
    assert (found.wordings, found.degraded) == ((), reason)


@pytest.mark.parametrize("stage", [Hyde(), ExpandQuery()])
def test_without_a_language_model_or_with_a_short_query_the_stage_is_skipped(stage):
    assert stage.skip_reason(state_of(query=QUERY)) == "no language model"
    assert stage.skip_reason(state(query="key day?")) == "the query is shorter than 10 characters"
    assert stage.skip_reason(state()) is None


@pytest.mark.parametrize("stage", [Hyde(), ExpandQuery()])
def test_the_query_is_what_the_user_says_and_no_more(stage):
    asking = state(DOCUMENT, DOCUMENT)
    stage.run(asking)
    system, user = asking.resources.chat.asked[0]
    assert (system.role, user.role, user.content) == ("system", "user", QUERY)
    assert QUERY not in system.content


MADE_UP = "The staging key rotates every Monday at nine in the morning, after the backup."


def test_a_document_is_taken_as_it_is():
    assert usable_document(f"  {MADE_UP}\n") == MADE_UP


@pytest.mark.parametrize(
    "answer",
    [
        f"<think>Let me see.\nOK.</think>\n{MADE_UP}",
        f"<THINK>hm</THINK>{MADE_UP}",
        f"{MADE_UP}<think>and this never ends",
        f"</think>{MADE_UP}",
    ],
)
def test_thoughts_are_left_out(answer):
    assert usable_document(answer) == MADE_UP


@pytest.mark.parametrize("answer", [*CASES["junk"], f"<think>{MADE_UP}"])
def test_junk_and_refusals_are_no_documents(answer):
    assert usable_document(answer) is None


ROTATION = "When does the key rotate?"


def found(answer, count=3):
    return read_wordings(answer, query=ROTATION, count=count)


def test_each_line_is_a_wording_that_comes_once_and_no_more_come_than_were_asked_for():
    # Each line is a wording.
    assert found("rotation day of the key\nkey rotation schedule") == (
        "rotation day of the key",
        "key rotation schedule",
    )
    # A wording comes once.
    assert found("key rotation schedule\nKey rotation, schedule!") == ("key rotation schedule",)
    # No more come than were asked for.
    assert len(found("wording number one\nwording number two\nwording number six", count=2)) == 2
    # Thoughts are not wordings.
    assert found("<think>the user wants a schedule\n</think>key rotation schedule") == (
        "key rotation schedule",
    )
    # The prompt says how many.
    system, user = wording_prompt(ROTATION, count=3)
    assert "3 other wordings" in system.content
    assert user.content == ROTATION


@pytest.mark.parametrize("line", CASES["wordings"])
def test_numbers_bullets_and_quotes_are_taken_off(line):
    assert found(line) == ("key rotation schedule",)


@pytest.mark.parametrize("line", [*CASES["no wordings"], "x" * 301])
def test_comments_repetitions_and_what_is_too_short_or_long_are_refused(line):
    assert found(line) == ()


@given(st.text())
def test_any_answer_can_be_read(answer):
    assert all(10 <= len(each) <= 300 for each in found(answer))
