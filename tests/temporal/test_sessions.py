"""Sessions by their number: from 1 the oldest, from -1 the newest."""

import pytest

from ekphory.time_words.reference import NO_SUCH_SESSION
from temporal.readings import reading, sessions, times


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in our third session", (3, 3)),
        ("in our 3rd discussion", (3, 3)),
        ("in our twenty-first conversation", (21, 21)),
        ("in session 3", (3, 3)),
        ("in conversation number three", (3, 3)),
        ("in our third meeting", (3, 3)),
        ("the first time we talked", (1, 1)),
        ("3 sessions ago", (-3, -3)),
        ("one session ago", (-1, -1)),
        ("a couple of chats ago", (-2, -2)),
        ("in our last session", (-1, -1)),
        ("What did we talk about last time?", (-1, -1)),
        ("the last time we talked", (-1, -1)),
        ("the session before last", (-2, -2)),
        ("the second to last session", (-2, -2)),
        ("the last but one conversation", (-2, -2)),
        ("the penultimate discussion", (-2, -2)),
        ("not the last discussion, but the one before that", (-2, -2)),
        ("the session before our third session", (2, 2)),
    ],
)
def test_a_session_has_a_number(text, expected):
    assert sessions(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("over sessions 1 through 3", (1, 3)),
        ("sessions 1-3", (1, 3)),
        ("from the first through third sessions", (1, 3)),
        ("from the 1st to the 3rd session", (1, 3)),
        ("between session 2 and session 4", (2, 4)),
        ("the first three sessions", (1, 3)),
        ("our last two conversations", (-2, -1)),
        ("since our third session", (3, -1)),
        ("before session 5", (1, 4)),
        ("after the last session", (NO_SUCH_SESSION, -1)),
        ("the last session and the one before", (-2, -1)),
        ("the first session and the one before", (1, 1)),
    ],
)
def test_several_sessions_have_a_first_and_a_last_one(text, expected):
    assert sessions(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in sessions 2 and 4", [(2, 2), (4, 4)]),
        ("in sessions 2, 3 and 5", [(2, 2), (3, 3), (5, 5)]),
        ("in sessions 1-3, and 5", [(1, 3), (5, 5)]),
        ("in session 2, session 3 and session 5", [(2, 2), (3, 3), (5, 5)]),
        ("in our second, third and fifth sessions", [(2, 2), (3, 3), (5, 5)]),
    ],
)
def test_sessions_that_are_named_one_by_one_are_apart(text, expected):
    assert sessions(text) == expected
    assert reading(text).remaining == ""


def test_sessions_can_be_counted_within_a_time():
    assert sessions("our second session in May") == [(2, 2)]
    assert times("our second session in May") == ["2026-05-01/2026-06-01"]


@pytest.mark.parametrize(
    ("text", "number", "expected"),
    [
        ("the last session before Christmas", (-1, -1), "../2025-12-24"),
        ("our last two chats before last Tuesday", (-2, -1), "../2026-11-17"),
        ("the first session after May 8", (1, 1), "2026-05-09/.."),
        ("our first two sessions since June", (1, 2), "2026-06-01/.."),
    ],
)
def test_sessions_can_be_counted_before_and_after_a_time(text, number, expected):
    assert sessions(text) == [number]
    assert times(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "When did we last talk about the dog?",
        "How long ago did we last talk about the dog?",
        "On which day did we first talk about the dog?",
        "In which session did we last talk about the dog?",
        "When was the last time we talked about the dog?",
        "When was our last session about the dog?",
        "When did we have our first conversation about the dog?",
        "Do you remember when we last talked about the dog?",
    ],
)
def test_a_question_for_the_time_names_none(text):
    assert sessions(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did we last talk about?", (-1, -1)),
        ("When we last talked, what did I say about the dog?", (-1, -1)),
        ("What did I say about the dog when we last talked?", (-1, -1)),
        ("When did we last talk?", (-1, -1)),
        ("When did we first meet?", (1, 1)),
    ],
)
def test_a_question_that_the_whole_session_answers_names_it(text, expected):
    assert sessions(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "When was the last time John went hiking?",
        "What did she try for the first time?",
        "Which sessions did the conference have?",
        "Who gave a talk?",
    ],
)
def test_what_is_not_counted_is_no_session_of_ours(text):
    assert sessions(text) == []


@pytest.mark.parametrize("text", ["sessions 1 and 2 in May", "in May, sessions 1 and 2"])
def test_a_time_beside_several_sessions_holds_for_each(text):
    assert times(text) == ["2026-05-01/2026-06-01", "2026-05-01/2026-06-01"]
    assert sessions(text) == [(1, 1), (2, 2)]
