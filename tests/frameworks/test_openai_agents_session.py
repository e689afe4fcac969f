import asyncio

import pytest
from agents.memory import Session, SessionSettings

from ekphory.errors import InvalidInput
from ekphory.frameworks.openai_agents import EkphorySession

from .openai_service import said

USER = {"role": "user", "content": "My cat is called Tom"}
ASSISTANT = said("A fine name")
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "fed"}
CALL = {"type": "function_call", "call_id": "c1", "name": "feed", "arguments": '{"grams": 40}'}
REASONING = {
    "type": "reasoning", "id": "rs_1", "encrypted_content": "\x00\ud800=",
    "summary": [{"type": "summary_text", "text": "The cat is hungry"}],
}  # fmt: skip
PICTURE = {
    "role": "user",
    "content": [
        {"type": "input_text", "text": "Look at this"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
    ],
}
UNKNOWN = {"type": "something_new", "numbers": [1, 2.5, None, True]}


@pytest.fixture
def session(open_memory):
    return EkphorySession(open_memory(user="mara", session="monday"))


def run(awaitable):
    return asyncio.run(awaitable)


def test_it_is_what_the_sdk_takes_for_a_session(session, memory):
    assert isinstance(session, Session)
    assert session.session_id == "monday"
    with pytest.raises(InvalidInput, match="bound to no session"):
        EkphorySession(memory)


def test_items_of_every_kind_come_back_equal_and_in_order(session):
    items = [USER, USER, REASONING, CALL, OUTPUT, ASSISTANT, PICTURE, UNKNOWN]
    run(session.add_items(items[:3]))
    run(session.add_items(items[3:]))
    assert run(session.get_items()) == items


def test_the_newest_are_given_in_order_where_a_limit_is_set(session, open_memory):
    run(session.add_items([USER, CALL, OUTPUT]))
    assert run(session.get_items(limit=2)) == [CALL, OUTPUT]
    assert run(session.get_items(limit=9)) == [USER, CALL, OUTPUT]
    assert run(session.get_items(limit=0)) == []
    memory = open_memory(user="mara", session="monday")
    limited = EkphorySession(memory, session_settings=SessionSettings(limit=1))
    assert run(limited.get_items()) == [OUTPUT]
    assert run(limited.get_items(limit=2)) == [CALL, OUTPUT]


def test_the_newest_item_is_popped_until_none_is_left(session):
    run(session.add_items([USER, ASSISTANT]))
    assert run(session.pop_item()) == ASSISTANT
    assert run(session.pop_item()) == USER
    assert run(session.pop_item()) is None


def test_a_cleared_session_is_empty_and_its_words_are_not_found(session, open_memory):
    run(session.add_items([USER, CALL]))
    run(session.clear_session())
    assert run(session.get_items()) == []
    assert open_memory(user="mara").count() == 0


def test_what_was_said_is_found_in_any_later_dialogue_of_the_user(session, open_memory):
    run(session.add_items([USER, CALL, ASSISTANT]))
    hits = open_memory(user="mara").search("cat", pools=["agent_memory"]).hits
    assert {hit.text for hit in hits} == {"My cat is called Tom", "A fine name"}
    assert (hits[0].memory.role, hits[0].memory.session) == ("user", "monday")
    assert open_memory(user="ben").search("cat").hits == ()


def test_calls_and_reasoning_stand_in_a_pool_of_their_own(session, open_memory):
    run(session.add_items([REASONING, CALL, OUTPUT, UNKNOWN]))
    listed = open_memory(user="mara").list(order="written")
    assert {record.pool for record in listed} == {"agent_tools"}
    assert [record.text for record in listed] == [
        "The cat is hungry", 'feed {"grams": 40}', "fed", "something_new",
    ]  # fmt: skip


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


def test_other_memories_of_the_same_scope_are_no_items(session, open_memory):
    memory = open_memory(user="mara", session="monday")
    memory.add("A note of somebody's own")
    run(session.add_items([USER]))
    assert run(session.get_items()) == [USER]
    run(session.clear_session())
    assert [record.text for record in memory.list()] == ["A note of somebody's own"]


def test_an_item_that_json_cannot_hold_is_refused_and_nothing_is_written(session):
    with pytest.raises(InvalidInput, match=r"items\[1\]=.*cannot be kept"):
        run(session.add_items([USER, {"role": "user", "content": {1, 2}}]))
    with pytest.raises(InvalidInput, match=r"items\[0\]='hello': must be a mapping"):
        run(session.add_items(["hello"]))
    assert run(session.get_items()) == []
