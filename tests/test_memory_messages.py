"""`add_messages`: a conversation in the form that chat APIs use."""

import pytest

from ekphory.errors import InvalidInput

CHAT = [
    {"role": "user", "content": "Where did you go?"},
    {"role": "assistant", "content": "To Lisbon."},
]


def test_messages_become_memories_in_their_order(memory):
    report = memory.add_messages(CHAT)
    assert (report.added, len(report.ids)) == (2, 2)
    assert [memory.get(name).text for name in report.ids] == ["Where did you go?", "To Lisbon."]


def test_the_role_is_kept_and_is_the_producer(memory):
    first = memory.get(memory.add_messages(CHAT).ids[0])
    assert (first.role, first.producer) == ("user", "user")


def test_a_producer_of_its_own_comes_before_the_role(memory):
    message = {"role": "user", "content": "hi", "producer": "Anna", "metadata": {"n": 1}}
    found = memory.get(memory.add_messages([message]).ids[0])
    assert (found.role, found.producer, found.metadata) == ("user", "Anna", {"n": 1})


def test_session_and_pool_hold_for_all_messages(memory):
    memory.add_messages(CHAT, session="s1", pool="shared_knowledge")
    assert {(entry.session, entry.pool) for entry in memory.list()} == {("s1", "shared_knowledge")}


def test_repeating_the_call_adds_nothing(memory):
    first = memory.add_messages(CHAT, session="s1")
    again = memory.add_messages(CHAT, session="s1")
    assert (again.added, again.skipped, again.ids) == (0, 2, first.ids)


def test_repeating_the_call_without_a_session_adds_nothing(memory):
    memory.add_messages(CHAT)
    assert memory.add_messages(CHAT).skipped == 2


def test_a_conversation_that_grew_adds_only_what_is_new(memory):
    memory.add_messages(CHAT, session="s1")
    report = memory.add_messages([*CHAT, {"role": "user", "content": "Nice!"}], session="s1")
    assert (report.added, report.skipped) == (1, 2)


def test_a_message_said_twice_in_one_conversation_is_kept_twice(memory):
    chat = [{"role": "user", "content": "yes"}, {"role": "user", "content": "yes"}]
    assert memory.add_messages(chat).added == 2
    assert memory.add_messages(chat).skipped == 2


def test_a_message_repeated_with_its_id_is_kept_once(memory):
    chat = [{"role": "user", "content": "yes", "id": "m1"}] * 2
    report = memory.add_messages(chat)
    assert (report.added, report.skipped, report.ids) == (1, 1, ("m1", "m1"))


def test_the_same_conversation_in_another_session_is_another_one(memory):
    memory.add_messages(CHAT, session="s1")
    assert memory.add_messages(CHAT, session="s2").added == 2


def test_no_messages_are_no_work(memory):
    report = memory.add_messages([])
    assert (report.added, report.skipped, report.ids) == (0, 0, ())


def test_thousands_of_messages_are_written_in_one_call(memory):
    chat = [{"role": "user", "content": f"turn {n}", "id": f"m{n}"} for n in range(1_500)]
    assert memory.add_messages(chat).added == 1_500
    assert memory.add_messages(chat).skipped == 1_500


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([{"role": "user", "content": "fine"}, {"role": "user"}], r"messages\[1\]"),
        ([{"role": "user", "content": "fine"}, "hello"], r"messages\[1\]"),
        ([{"role": "user", "content": "fine"}, {"content": "  "}], "text"),
        ([{"role": "user", "content": "fine"}, {"content": ["part"]}], "text"),
        ([{"role": "user", "content": "fine"}, {"content": "x", "colour": "red"}], "colour"),
        ({"role": "user", "content": "hi"}, "messages"),
        ("hi", "messages"),
        (5, "messages"),
    ],
)
def test_a_message_that_cannot_be_stored_stops_the_whole_call(memory, messages, field):
    with pytest.raises(InvalidInput, match=field):
        memory.add_messages(messages)
    assert memory.count() == 0


def test_an_answer_is_found_through_the_question_before_it(memory):
    for session, question in [("s1", "How was the food?"), ("s2", "Where was the wedding?")]:
        memory.add_messages(
            [{"role": "user", "content": question}, {"role": "assistant", "content": "Lisbon."}],
            session=session,
        )
    answers = [hit for hit in memory.search("place of the wedding").hits if hit.text == "Lisbon."]
    assert [hit.memory.session for hit in answers] == ["s2", "s1"]
    assert [hit.scores["bm25"] for hit in answers] == [0.0, 0.0]
    assert answers[0].scores["lexical"] > answers[1].scores["lexical"] == 0.0
