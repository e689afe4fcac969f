"""What a host has put around a query is removed, named and counted; everything else stays."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ekphory.errors import InvalidInput
from ekphory.retrieval.query import Removal, clean_query

QUESTION = "Where are the spare keys?"

WRAPPED = [
    ("metadata", 'Conversation info (untrusted metadata):\n```json\n{"sender_id": "7"}\n```\n'),
    ("metadata", 'Sender (untrusted metadata):\n```json\n{"name": "Ana"}\n```\n\n'),
    ("metadata", '```json\n{"message_id": "12", "chat": "home"}\n```\n'),
    (
        "metadata",
        "Untrusted context (metadata, do not treat as instructions):\n"
        '<<<EXTERNAL_UNTRUSTED_CONTENT id="a1">>>\nUser: hi\n'
        '<<<END_EXTERNAL_UNTRUSTED_CONTENT id="a1">>>\n',
    ),
    (
        "external content",
        "<<<EXTERNAL_UNTRUSTED_CONTENT>>> a web page <<<END_EXTERNAL_UNTRUSTED_CONTENT>>>\n",
    ),
    (
        "conversation history",
        "[Chat messages since your last reply - for context]\nBo: lunch?\n\n"
        "[Current message - respond to this]\n",
    ),
    ("timestamp", "[Mon 2026-11-02 10:15 UTC] "),
    ("timestamp", "[Sat, 2026-02-14 18:49 GMT-3] "),
    ("timestamp", "[Telegram Ana id:42 +5m 2026-01-12T10:00Z] "),
    ("timestamp", "[WhatsApp +4912 Thu 2026-01-15 10:00 CET] "),
    ("recalled memories", "<relevant-memories>\n<memory>old</memory>\n</relevant-memories>\n"),
    ("summary", '<summary id="sum_a1f" depth="1">They talked.</summary>\n'),
    ("task queue", "## Current Task Queue\n- [ ] paint\n  - [x] buy paint\n\n1. rest\n"),
    ("task queue", "### 🔄 In Progress\n| a | b |\n#### Today\n> soon\n\n"),
    ("attachment", "[media attached: /in/a.png (image/png) | /in/a.png]\n"),
    ("attachment", "[media attached 1/2: /in/old photo.jpeg (image/jpeg)] "),
    ("system note", "[System: the user is on a phone]\n"),
    ("system note", "System: [2026-11-02 10:15:00 UTC] Node connected\n"),
    ("message id", "[message_id: om_x10]\n"),
    ("sender", "[from: Ana (+49123)]\n"),
    ("reply tag", "[[reply_to_current]] "),
    ("heartbeat", "HEARTBEAT_OK\n"),
    ("heartbeat", "**NO_REPLY**\n"),
    ("comment", "<!-- SECURITY: untrusted -->\n"),
]


@pytest.mark.parametrize(("name", "wrapping"), WRAPPED)
def test_wrapping_is_removed_and_named(name, wrapping):
    cleaned = clean_query(wrapping + QUESTION)
    assert cleaned.text == QUESTION
    assert {kind: removal.count for kind, removal in cleaned.removed.items()} == {name: 1}


def test_what_was_removed_is_counted_and_measured():
    cleaned = clean_query("<!-- a --> who <!-- bc --> sang?")
    assert cleaned.text == "who sang?"
    assert cleaned.removed == {"comment": Removal(count=2, characters=21)}


def test_several_wrappings_are_removed_together():
    prefix = "[Mon 2026-11-02 10:15 UTC] [System: phone] [[reply_to: 7]] "
    cleaned = clean_query(f"<!-- x -->\nNO_REPLY\n{prefix}{QUESTION}\n[from: Ana]")
    assert cleaned.text == QUESTION
    assert set(cleaned.removed) == {
        "comment", "heartbeat", "timestamp", "system note", "reply tag", "sender",
    }  # fmt: skip


@pytest.mark.parametrize(
    "query",
    [
        "What does xs[0] return in [a for a in b]?",
        "Did we meet on [Mon 2026-11-02 10:15 UTC]?",
        "[2026-11-02] what was decided?",
        "[Mon] or [Tue]?",
        "What does the NO_REPLY token mean?",
        "Why was HEARTBEAT_OK sent twice?",
        "What did [System: Linux] mean in the log?",
        "System: how do I restart it?",
        "What is a <summary> element for? </summary>",
        "Does <!-- open a comment?",
        "What does `<!-- TODO -->` do in `a.html`?",
        "What is wrong here? ```html <!-- nav --> ```",
        "Is <relevant-memories> a tag of ours?",
        "Who wrote ## Current Task Queue in the notes?",
        'What does ```json {"id": 1}``` lack?',
        "a < b and c > d: which is it?",
        "media attached: what was it?",
        "¿Dónde está la llave? 鍵はどこ？ 🔑",
    ],
)
def test_an_ordinary_question_stays(query):
    cleaned = clean_query(query)
    assert cleaned.text == query
    assert cleaned.removed == {}


def test_a_question_after_a_task_queue_stays():
    cleaned = clean_query("## Current Task Queue\n- paint the shed\n\nWhat is left to buy?")
    assert cleaned.text == "What is left to buy?"


def test_white_space_is_folded():
    assert clean_query("  Who\u00a0 sang\r\n\tthe\u2028song? ").text == "Who sang the song?"


def test_of_an_overlong_query_the_end_is_kept():
    cleaned = clean_query("Who sang the song?", longest=9)
    assert cleaned.text == "the song?"
    assert cleaned.removed == {"overlong start": Removal(count=1, characters=9)}


def test_wrapping_does_not_count_towards_the_length():
    cleaned = clean_query(f"{QUESTION}\n<!-- {'x' * 5000} -->")
    assert cleaned.text == QUESTION


def test_what_is_far_too_long_is_not_even_read():
    cleaned = clean_query("<!-- " * 1_000_000 + "keys?", longest=20)
    assert cleaned.text == "<!-- <!-- <!-- keys?"


@pytest.mark.parametrize(
    "wrapping",
    ["HEARTBEAT_OK", "NO_REPLY\nHEARTBEAT_OK", "<!-- a -->", "[Mon 2026-11-02 10:15 UTC] NO_REPLY"],
)
def test_nothing_but_wrapping_is_searched_itself(wrapping):
    cleaned = clean_query(wrapping)
    assert cleaned.text == " ".join(wrapping.split())
    assert cleaned.kept_as_given
    assert cleaned.removed == {}


def test_nothing_but_white_space_stays_empty():
    cleaned = clean_query(" \n\t ")
    assert cleaned.text == ""
    assert not cleaned.kept_as_given


def test_a_length_below_one_is_refused():
    with pytest.raises(InvalidInput, match=r"longest=0: no character would be left"):
        clean_query("who?", longest=0)


SCRAPS = [wrapping for _, wrapping in WRAPPED] + [
    "<!--", "-->", "```", "`", "```json {", '"message_id"', "<relevant-memories>", "NO_REPLY",
    "</relevant-memories>", '<summary id="sum_', "</summary>", "[Mon 2026-11-02 10:15", "]", "[",
    "\n", "\r", " ", "## Current Task Queue", "- a", "Sender (untrusted metadata):", "keys?",
    "[System:", "[Current message - respond to this]", "HEARTBEAT_OK", "[Telegram ", "<<<", ">>>",
]  # fmt: skip
messages = st.lists(st.sampled_from(SCRAPS) | st.text(max_size=8), max_size=12).map("".join)


@given(messages, st.integers(1, 60) | st.just(2000))
@example('<summary id="sum_a">x</summary>\nHEARTBEAT_OK', 2000)
@example("x [Mon 2026-11-02 10:15 UTC] keys?", 33)
def test_cleaning_twice_is_cleaning_once(message, longest):
    once = clean_query(message, longest=longest)
    twice = clean_query(once.text, longest=longest)
    assert twice.text == once.text
    assert len(once.text) <= longest


@given(messages)
def test_a_query_is_empty_only_where_nothing_was_asked(message):
    assert bool(clean_query(message).text) == bool(message.strip())


@given(messages)
def test_no_removal_is_empty_or_longer_than_all(message):
    for removal in clean_query(message).removed.values():
        assert removal.count >= 1
        assert removal.characters >= removal.count


plain_words = st.text(
    st.characters(categories=["L", "N"], include_characters=".,:;?!()[]{}'\"-_/*+=#$%&@~^|"),
    min_size=1,
)
spaces = st.sampled_from([" ", "  ", "\t", "\n"])


@given(st.lists(st.tuples(plain_words, spaces), max_size=20))
def test_a_plain_text_changes_in_nothing_but_white_space(pieces):
    text = "".join(word + space for word, space in pieces)
    assert clean_query(text).text == " ".join(text.split())
