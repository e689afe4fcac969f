"""Messages of a dialogue are checked, and read as people and services write them."""

from datetime import UTC, datetime

import pytest

from ekphory.capture.transcript import read_messages
from ekphory.errors import InvalidInput


def texts(given):
    return [(each.message.role, each.message.speaker, each.message.text) for each in given]


def test_a_message_has_a_role_a_text_and_a_moment():
    (given,) = read_messages([{"role": "user", "content": "hello", "at": "2026-05-04T09:00:00Z"}])
    assert (given.message.role, given.message.text) == ("user", "hello")
    assert given.at == datetime(2026, 5, 4, 9, tzinfo=UTC)


def test_blocks_of_text_are_read_and_others_passed_over():
    content = [{"type": "text", "text": "look"}, {"type": "image", "source": {}}, "here"]
    assert texts(read_messages([{"role": "assistant", "content": content}])) == [
        ("assistant", "", "look\nhere")
    ]


@pytest.mark.parametrize(
    ("given", "role"), [("human", "user"), ("ai", "assistant"), ("function", "tool")]
)
def test_other_names_of_roles_are_known(given, role):
    assert texts(read_messages([{"role": given, "content": "x"}])) == [(role, "", "x")]


def test_in_a_chat_between_people_the_name_before_a_message_is_the_speaker():
    said = ["Ilse: we landed", "Tomé: at last", "Ilse: bring the keys"]
    found = read_messages([{"role": "user", "content": each} for each in said])
    assert texts(found) == [
        ("user", "Ilse", "we landed"),
        ("user", "Tomé", "at last"),
        ("user", "Ilse", "bring the keys"),
    ]


def test_a_colon_in_a_dialogue_with_an_assistant_is_no_speaker():
    said = ["Note: use tabs", "and then?", "fine", "Wait: why?"]
    found = read_messages([{"role": "user", "content": each} for each in said])
    assert [each.message.speaker for each in found] == [""] * 4


def test_what_was_recalled_is_taken_out(memory):
    memory.add("I like green tea")
    block = memory.search("tea").to_prompt(max_tokens=400)
    said = read_messages([{"role": "user", "content": f"{block}\nWhat shall I drink?"}])
    assert texts(said) == [("user", "", "What shall I drink?")]


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ({"role": "user"}, "messages"),
        ("hello", "messages"),
        ([{"role": "user"}], r"messages\[0\]"),
        (["hello"], r"messages\[0\]"),
        ([{"role": "robot", "content": "x"}], r"messages\[0\]\.role"),
        ([{"role": "user", "content": 7}], r"messages\[0\]\.content"),
        ([{"role": "user", "content": "x", "name": 7}], r"messages\[0\]\.name"),
        ([{"role": "user", "content": "x", "at": "soon"}], r"messages\[0\]\.at"),
    ],
)
def test_what_cannot_be_read_is_named(messages, field):
    with pytest.raises(InvalidInput, match=field):
        read_messages(messages)


def test_half_of_a_sign_is_replaced_not_refused():
    assert texts(read_messages([{"role": "user", "content": "a\ud800b"}])) == [
        ("user", "", "a\ufffdb")
    ]
