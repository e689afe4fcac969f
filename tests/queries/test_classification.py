"""What kind of query it is, by its words alone."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.retrieval.query import CUES, INTENTS, Intent, QueryClass, classify_query, words_of


@pytest.mark.parametrize(
    ("query", "intent"),
    [
        ("What is the gate code?", "lookup"),
        ("When did we paint the fence?", "temporal"),
        ("Which jam does Otto prefer?", "preference"),
        ("How do I prune the vine?", "procedural"),
        ("Is the tram cheaper than the taxi?", "comparison"),
        ("Who recommended the plumber, and where does that person live?", "chain"),
    ],
)
def test_every_intent_is_recognised(query, intent):
    assert classify_query(query).intent == intent


@pytest.mark.parametrize(
    ("query", "intent"),
    [
        ("What do I like for breakfast?", "preference"),
        ("What is my sister like?", "lookup"),
        ("What does the logo look like?", "lookup"),
        ("What will the weather be like?", "lookup"),
        ("I would like to see the invoice", "lookup"),
    ],
)
def test_like_is_a_preference_only_as_a_verb(query, intent):
    assert classify_query(query).intent == intent


@pytest.mark.parametrize(
    ("query", "intent"),
    [("Where were we in May?", "temporal"), ("Where may we park?", "lookup")],
)
def test_may_is_a_month_only_where_it_is_written_as_a_name(query, intent):
    assert classify_query(query).intent == intent


@pytest.mark.parametrize(
    ("query", "hints"),
    [
        ("What is the most important rule here?", {"importance": 1.0}),
        ("Tell me my seat preference", {"semantic": 1.0}),
        ("How do I bleed the brakes?", {"procedural": 0.9}),
        ("What happened at the fair?", {"episodic": 0.8}),
        ("When did Noa call?", {"episodic": 0.8}),
        ("Where is the ladder?", {}),
    ],
)
def test_words_hint_at_the_memories_that_are_wanted(query, hints):
    assert classify_query(query).hints.given == hints


def test_a_hint_for_another_intent_than_the_one_found_is_dropped():
    found = classify_query("How do we compare them?")
    assert found.intent == "comparison"
    assert found.hints.given == {}


def test_signals_name_the_rules_that_spoke():
    found = classify_query("How do I reset the most important alarm?")
    assert found.signals == ("asks how to", "asks for the most important")


def test_of_statements_and_questions_only_the_questions_count():
    said = "Yesterday we compared two ovens before dinner. Where is the receipt?"
    assert classify_query(said).intent == "lookup"


def test_an_abbreviation_does_not_end_a_sentence():
    assert classify_query("When did Dr. Novak call?").intent == "temporal"


def test_a_plain_question_has_no_complexity():
    assert classify_query("Where is the ladder?").complexity == 0.0


def test_clauses_names_and_length_add_complexity():
    assert classify_query("Where is Ana and where is Bo?").complexity == 0.3
    several = "Who fed the cat, if Ana and Bo were out, and which food did it get from him?"
    assert classify_query(several).complexity == 0.9


def test_another_language_is_a_lookup():
    assert classify_query("Missä vara-avaimet ovat?") == QueryClass("lookup", 0.0)


def test_the_intents_are_all_listed():
    assert set(INTENTS) == set(Intent.__args__)


@given(st.text(max_size=200) | st.text("abch ,'?什いs", max_size=200))
def test_any_text_has_a_class_within_bounds(text):
    found = classify_query(text)
    assert found.intent in INTENTS
    assert 0 <= found.complexity <= 1
    assert all(0 <= value <= 1 for value in dataclasses.astuple(found.hints))


@given(st.text(max_size=100))
def test_white_space_around_a_query_says_nothing(text):
    assert classify_query(f"  {text}\n") == classify_query(text)


def test_of_an_overlong_text_the_end_is_classified():
    assert classify_query("x " * 100_000 + "When did Noa call").intent == "temporal"


@pytest.mark.parametrize("cue", CUES, ids=lambda cue: cue.signal)
def test_the_example_of_a_cue_holds_one_of_its_phrases(cue):
    said = f" {' '.join(words_of(cue.example))} "
    assert any(f" {' '.join(words_of(each))} " in said or each in said for each in cue.phrases)
