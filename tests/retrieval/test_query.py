"""What kind of query it is, by its words alone."""

import dataclasses
import json
import statistics
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.cases import read_cases

from ekphory.errors import InvalidInput
from ekphory.retrieval.asked_state import asked_state
from ekphory.retrieval.pipeline import QueryClass
from ekphory.retrieval.query import (
    CUES,
    DEEPEST,
    INTENTS,
    TENSES,
    Removal,
    classify_query,
    clean_query,
    depth_factor,
    find_tenses,
    is_question,
    words_of,
)

CASES = read_cases(__file__)


@pytest.mark.parametrize(
    ("query", "intent"), [*CASES["intents"], ("x " * 100_000 + "When did Noa call", "temporal")]
)
def test_every_intent_is_recognised(query, intent):
    assert classify_query(query).intent == intent


@pytest.mark.parametrize(("query", "hints"), CASES["hints"])
def test_words_hint_at_the_memories_that_are_wanted(query, hints):
    assert classify_query(query).hints.given == hints


def test_signals_name_the_rules_that_spoke():
    # Signals name the rules that spoke.
    found = classify_query("How do I reset the most important alarm?")
    assert found.signals == ("asks how to", "asks for the most important")
    # Another language is a lookup.
    assert classify_query("Missä vara-avaimet ovat?") == QueryClass("lookup", 0.0)


@pytest.mark.parametrize(
    ("query", "complexity"),
    [
        ("Where is the ladder?", 0.0),
        ("Where is Ana and where is Bo?", 0.3),
        ("Who fed the cat, if Ana and Bo were out, and which food did it get from him?", 0.9),
    ],
)
def test_clauses_names_and_length_add_complexity(query, complexity):
    assert classify_query(query).complexity == complexity


@given(st.text(max_size=200) | st.text("abch ,'?什いs", max_size=200))
def test_any_text_has_a_class_within_bounds(text):
    found = classify_query(text)
    assert found.intent in INTENTS
    assert 0 <= found.complexity <= 1
    assert all(0 <= value <= 1 for value in dataclasses.astuple(found.hints))


@given(st.text(max_size=100))
def test_white_space_around_a_query_says_nothing(text):
    assert classify_query(f"  {text}\n") == classify_query(text)


@pytest.mark.parametrize("cue", [*CUES, *TENSES], ids=lambda cue: cue.signal)
def test_the_example_of_a_cue_holds_one_of_its_phrases(cue):
    said = f" {' '.join(words_of(cue.example))} "
    assert any(f" {' '.join(words_of(each))} " in said or each in said for each in cue.phrases)


@pytest.mark.parametrize("cue", TENSES, ids=lambda cue: cue.signal)
def test_the_example_of_a_tense_asks_for_it_alone(cue):
    assert find_tenses(cue.example) == {cue.tense} - {None}


@pytest.mark.parametrize(("question", "state"), CASES["asked_states"])
def test_words_of_ten_languages_ask_for_a_state_of_what_changed(question, state):
    assert asked_state(question) == state


@pytest.mark.parametrize(("intent", "complexity", "factor"), [*CASES["depths"], (None, None, 1.0)])
def test_what_needs_more_evidence_is_searched_deeper(intent, complexity, factor):
    assert depth_factor(intent and QueryClass(intent, complexity)) == factor


@given(st.sampled_from(INTENTS), st.floats(0, 1))
def test_the_factor_stays_within_bounds(intent, complexity):
    assert 1.0 <= depth_factor(QueryClass(intent, complexity)) <= DEEPEST


QUESTION = "Where are the spare keys?"

WRAPPED = CASES["wrapped"]


@pytest.mark.parametrize(("name", "wrapping"), WRAPPED)
def test_wrapping_is_removed_and_named(name, wrapping):
    cleaned = clean_query(wrapping + QUESTION)
    assert cleaned.text == QUESTION
    assert {kind: removal.count for kind, removal in cleaned.removed.items()} == {name: 1}


def test_what_was_removed_is_counted_and_measured():
    # What was removed is counted and measured.
    cleaned = clean_query("<!-- a --> who <!-- bc --> sang?")
    assert cleaned.text == "who sang?"
    assert cleaned.removed == {"comment": Removal(count=2, characters=21)}
    # Several wrappings are removed together.
    prefix = "[Mon 2026-11-02 10:15 UTC] [System: phone] [[reply_to: 7]] "
    cleaned = clean_query(f"<!-- x -->\nNO_REPLY\n{prefix}{QUESTION}\n[from: Ana]")
    assert cleaned.text == QUESTION
    assert set(cleaned.removed) == {
        "comment", "heartbeat", "timestamp", "system note", "reply tag", "sender",
    }  # fmt: skip
    # Of an overlong query the end is kept.
    cleaned = clean_query("Who sang the song?", longest=9)
    assert cleaned.text == "the song?"
    assert cleaned.removed == {"overlong start": Removal(count=1, characters=9)}


@pytest.mark.parametrize("query", CASES["ordinary"])
def test_an_ordinary_question_stays(query):
    cleaned = clean_query(query)
    assert cleaned.text == query
    assert cleaned.removed == {}


@pytest.mark.parametrize(
    ("query", "longest", "text"),
    [
        (
            "## Current Task Queue\n- paint the shed\n\nWhat is left to buy?",
            99,
            "What is left to buy?",
        ),
        ("  Who\u00a0 sang\r\n\tthe\u2028song? ", 99, "Who sang the song?"),
        (" \n\t ", 99, ""),
        # Wrapping does not count towards the length, and what is far too long is not even read.
        (f"{QUESTION}\n<!-- {'x' * 5000} -->", 2000, QUESTION),
        ("<!-- " * 1_000_000 + "keys?", 20, "<!-- <!-- <!-- keys?"),
    ],
    ids=["after a task queue", "white space", "nothing else", "long wrapping", "far too long"],
)
def test_the_question_is_kept_within_the_length(query, longest, text):
    cleaned = clean_query(query, longest=longest)
    assert (cleaned.text, cleaned.kept_as_given) == (text, False)


@pytest.mark.parametrize(
    "wrapping",
    ["HEARTBEAT_OK", "NO_REPLY\nHEARTBEAT_OK", "<!-- a -->", "[Mon 2026-11-02 10:15 UTC] NO_REPLY"],
)
def test_nothing_but_wrapping_is_searched_itself(wrapping):
    cleaned = clean_query(wrapping)
    assert cleaned.text == " ".join(wrapping.split())
    assert cleaned.kept_as_given
    assert cleaned.removed == {}


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
def test_no_removal_is_empty_and_no_query_where_something_was_asked(message):
    cleaned = clean_query(message)
    assert bool(cleaned.text) == bool(message.strip())
    for removal in cleaned.removed.values():
        assert removal.characters >= removal.count >= 1


plain_words = st.text(
    st.characters(categories=["L", "N"], include_characters=".,:;?!()[]{}'\"-_/*+=#$%&@~^|"),
    min_size=1,
)
spaces = st.sampled_from([" ", "  ", "\t", "\n"])


@given(st.lists(st.tuples(plain_words, spaces), max_size=20))
def test_a_plain_text_changes_in_nothing_but_white_space(pieces):
    text = "".join(word + space for word, space in pieces)
    assert clean_query(text).text == " ".join(text.split())


LABELLED = [
    json.loads(line)
    for line in (Path(__file__).parent / "labelled_queries.jsonl").read_text("utf-8").splitlines()
]
GIVEN_FROM = 0.5
"""The strength from which a hint counts as given."""


def half(name: str) -> list[dict]:
    return [row for row in LABELLED if row["half"] == name]


def hints_of(row: dict) -> set[str]:
    found = classify_query(row["query"]).hints.given
    return {name for name, strength in found.items() if strength >= GIVEN_FROM}


def test_both_halves_hold_every_intent_and_no_query_twice():
    assert len(LABELLED) == len({row["query"].casefold() for row in LABELLED}) == 343
    for name in ("tuning", "held_out"):
        assert {row["intent"] for row in half(name)} == set(INTENTS)


def has_right_intent(row: dict) -> bool:
    return classify_query(row["query"]).intent == row["intent"]


@pytest.mark.parametrize(
    ("name", "intents", "hints"),
    # Measured: .826 and .913, and .789 and .883.
    [("tuning", 0.80, 0.89), ("held_out", 0.76, 0.86)],
)
def test_intent_and_all_hints_of_a_query_are_right(name, intents, hints):
    rows = half(name)
    assert statistics.mean(map(has_right_intent, rows)) >= intents
    assert statistics.mean(hints_of(row) == set(row["hints"]) for row in rows) >= hints


@pytest.mark.parametrize(
    ("intent", "at_least"),
    [
        ("lookup", 0.97),  # 1.0
        ("temporal", 0.93),  # .968
        ("preference", 0.82),  # .846
        ("procedural", 0.90),  # .923
        ("comparison", 0.72),  # .760
        # A chain is told by the shape of a question, which the agent alone reads: 0.
    ],
)
def test_every_intent_is_found_in_the_held_out_half(intent, at_least):
    rows = [row for row in half("held_out") if row["intent"] == intent]
    assert statistics.mean(map(has_right_intent, rows)) >= at_least


@pytest.mark.parametrize(
    ("hint", "found"),
    [
        ("importance", 0.95),  # 1.0
        ("episodic", 0.60),  # .636: a past tense alone is not seen
        ("semantic", 0.72),  # .750
        ("procedural", 0.90),  # .923
    ],
)
def test_a_hint_is_seldom_given_in_vain_and_found_as_often_as_measured(hint, found):
    rows = half("held_out")
    wanted = [row for row in rows if hint in row["hints"]]
    given = [row for row in rows if hint in hints_of(row)]
    right = [row for row in wanted if row in given]
    assert len(right) >= 0.85 * len(given)
    assert len(right) >= found * len(wanted)


def test_a_query_is_classified_in_a_fifth_of_a_millisecond():
    times = []
    for row in LABELLED:
        started = time.perf_counter()
        classify_query(row["query"])
        times.append(time.perf_counter() - started)
    assert statistics.median(times) < 0.0002  # measured: 0.00003


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Which of the late suppliers has the new clerk paid?", True),
        ("who paid the plumber", True),
        ("y a-t-il du pain ?", True),
        ("猫はどこ？", True),
        ("5% of perinatal mortality is due to low birth weight", False),
        ("the plumber", False),
        ("", False),
    ],
)
def test_what_asks_is_told_by_its_mark_or_its_first_word(text, asks):
    assert is_question(text) is asks
