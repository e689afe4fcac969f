import asyncio

import pytest
from agents.memory import Session, SessionSettings
from agents.memory.session import SessionABC

from ekphory.errors import InvalidInput
from ekphory.frameworks.openai_agents import EkphorySession

from .openai_service import said, thought

USER = {"role": "user", "content": "My cat is called Tom"}
ASSISTANT = said("A fine name")
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "fed"}
CALL = {"type": "function_call", "call_id": "c1", "name": "feed", "arguments": '{"grams": 40}'}
REASONING = thought("The cat is hungry") | {"encrypted_content": "\x00\ud800="}
PARTS = [
    {"type": "input_text", "text": "Look at this"},
    {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
]
PICTURE = {"role": "user", "content": PARTS}
UNKNOWN = {"type": "something_new", "numbers": [1, 2.5, None, True]}


@pytest.fixture
def monday(open_memory):
    return open_memory(user="mara", session="monday")


@pytest.fixture
def session(monday):
    return EkphorySession(monday)


def run(awaitable):
    return asyncio.run(awaitable)


def test_it_is_what_the_sdk_takes_for_a_session(session, memory):
    assert isinstance(session, Session)
    assert isinstance(session, SessionABC)
    assert session.session_id == "monday"
    with pytest.raises(InvalidInput, match="bound to no session"):
        EkphorySession(memory)


def test_items_of_every_kind_come_back_equal_and_in_order(session):
    items = [USER, USER, REASONING, CALL, OUTPUT, ASSISTANT, PICTURE, UNKNOWN]
    run(session.add_items(items[:3]))
    run(session.add_items(items[3:]))
    assert run(session.get_items()) == items


def test_the_newest_are_given_in_order_where_a_limit_is_set(session, monday):
    run(session.add_items([USER, CALL, OUTPUT]))
    for limit, items in ((2, [CALL, OUTPUT]), (9, [USER, CALL, OUTPUT]), (0, [])):
        assert run(session.get_items(limit=limit)) == items
    limited = EkphorySession(monday, session_settings=SessionSettings(limit=1))
    assert run(limited.get_items()) == [OUTPUT]
    assert run(limited.get_items(limit=2)) == [CALL, OUTPUT]
    # A cleared session is empty, and its words are not found.
    run(session.clear_session())
    assert run(session.get_items()) == []
    assert monday.count() == 0
    # The newest item is popped until none is left.
    run(session.add_items([USER, ASSISTANT]))
    assert [run(session.pop_item()) for _ in range(3)] == [ASSISTANT, USER, None]


def test_what_was_said_is_found_in_any_later_dialogue_of_the_user(session, open_memory):
    run(session.add_items([USER, CALL, ASSISTANT]))
    hits = open_memory(user="mara").search("cat", pools=["agent_memory"]).hits
    assert {hit.text for hit in hits} == {"My cat is called Tom", "A fine name"}
    assert (hits[0].memory.role, hits[0].memory.session) == ("user", "monday")
    assert open_memory(user="ben").search("cat").hits == ()
    # Calls and reasoning stand in a pool of their own.
    run(session.clear_session())
    run(session.add_items([REASONING, CALL, OUTPUT, UNKNOWN]))
    listed = open_memory(user="mara").list(order="written")
    assert {record.pool for record in listed} == {"agent_tools"}
    told = ["The cat is hungry", 'feed {"grams": 40}', "fed", "something_new"]
    assert [record.text for record in listed] == told


def test_a_message_of_nothing_but_recalled_memories_is_kept_and_not_remembered(
    session, open_memory
):
    recalled = open_memory(user="ben").search("nothing").to_prompt()
    item = {"role": "user", "content": recalled}
    run(session.add_items([item]))
    assert run(session.get_items()) == [item]
    assert [record.text for record in open_memory(user="mara").list()] == ["message"]


@pytest.mark.parametrize(
    "other",
    [
        {"user": "mara", "session": "friday"},
        {"user": "ben", "session": "monday"},
        {"session": "monday"},
        {"user": "mara", "session": "monday", "project": "p"},
    ],
)
def test_sessions_are_told_apart_by_the_whole_scope(session, open_memory, other):
    run(session.add_items([USER]))
    elsewhere = EkphorySession(open_memory(**other))
    assert run(elsewhere.get_items()) == []
    assert run(elsewhere.pop_item()) is None
    run(elsewhere.clear_session())
    assert run(session.get_items()) == [USER]


def test_other_memories_of_the_same_scope_are_no_items(session, monday):
    monday.add("A note of somebody's own")
    run(session.add_items([USER]))
    assert run(session.get_items()) == [USER]
    run(session.clear_session())
    assert [record.text for record in monday.list()] == ["A note of somebody's own"]


def test_an_item_that_json_cannot_hold_is_refused_and_nothing_is_written(session):
    with pytest.raises(InvalidInput, match=r"items\[1\]=.*cannot be kept"):
        run(session.add_items([USER, {"role": "user", "content": {1, 2}}]))
    with pytest.raises(InvalidInput, match=r"items\[0\]='hello': must be a mapping"):
        run(session.add_items(["hello"]))
    assert run(session.get_items()) == []
