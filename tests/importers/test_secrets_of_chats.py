"""What people say in the chats that they import, and nobody may read in a store or a list."""

import json

import pytest
from tests.importers.test_newer_exports import conversation, said
from tests.stored import stored_rows

from ekphory.importers.run import import_path


@pytest.fixture
def chats(memory, file):
    """Imports conversations of ChatGPT; returns the report, and what was stored of them."""

    def bring(*conversations):
        report = import_path(memory, file("export/conversations.json", json.dumps(conversations)))
        return report, {record.id.partition("/")[2]: record for record in memory.list(limit=1_000)}

    return bring


def entitled(title, *messages, identity="c1"):
    return conversation(*messages, identity=identity) | {"title": title}


def test_a_secret_that_somebody_said_is_cut_out_of_answers_before_and_after_and_of_the_title(
    chats, store_path
):
    _, found = chats(
        entitled(
            "WiFi password hedgehog-Lamp-91",
            said("a", "Shall I write hedgehog-Lamp-91 on the card?", role="assistant"),
            said("b", "yes, my wifi password is hedgehog-Lamp-91"),
            said("c", "I'll write hedgehog-Lamp-91 on the card.", role="assistant", day=1),
        )
    )
    assert found["a"].text == "Shall I write [redacted] on the card?"
    assert found["c"].text == "I'll write [redacted] on the card."
    assert {each.metadata["title"] for each in found.values()} == {"WiFi password [redacted]"}
    assert "hedgehog-Lamp-91" not in stored_rows(store_path)


def test_what_follows_a_question_for_a_secret_is_one_in_every_message(chats):
    _, found = chats(
        conversation(
            said("a", "The wifi password is hedgehog-Lamp-91; the vpn one is tiger-Lamp-77"),
            said("b", "tiger-Lamp-77 it is.", role="assistant", day=1),
        )
    )
    assert found["b"].text == "[redacted] it is."


def test_a_secret_of_a_long_conversation_is_cut_out_of_all_of_it(chats, store_path):
    answers = [
        said(f"m{n}", f"Answer {n} with hedgehog-Lamp-91", role="assistant") for n in range(300)
    ]
    chats(conversation(*answers, said("last", "the password is hedgehog-Lamp-91", day=1)))
    assert "hedgehog-Lamp-91" not in stored_rows(store_path)


def test_another_conversation_keeps_the_word(chats):
    _, found = chats(
        conversation(said("a", "the wifi password is bluehorse77"), identity="c1"),
        conversation(said("b", "my boat is bluehorse77", role="assistant"), identity="c2"),
    )
    assert found["b"].text == "my boat is bluehorse77"


def test_what_is_refused_is_listed_without_its_secrets(chats):
    unread = said("b", "") | {"content": "the password is Koala-Lamp-22"}
    report, _ = chats(
        entitled(
            "About\x00 it",
            said("a", "the vpn password is tiger-Lamp-77, ok"),
            unread,
        )
    )
    listed = report.failures_path.read_text()
    assert report.failed == 2
    assert "the vpn password is [redacted], ok" in listed
    assert "About\\u0000 it" in listed
    assert "Koala-Lamp-22" not in listed + str(report.examples)


def test_a_secret_beside_what_cannot_be_stored_is_cut_out_and_the_rest_is_listed(chats):
    report, _ = chats(conversation(said("a", "my PIN is 47119 \x00 and tea")))
    assert (report.failed, "47119" in report.failures_path.read_text()) == (1, False)
    assert "and tea" in report.failures_path.read_text()
