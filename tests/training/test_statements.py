from random import Random

import pytest
from tests.cases import read_cases

from ekphory_lab.training.question_groups import reported_question, reworded
from ekphory_lab.training.statements import (
    Statement,
    Tail,
    plain_form_of_past,
    plain_form_of_third_person,
    statement_questions,
    statements,
)

CASES = read_cases(__file__)


def asked(text):
    return statement_questions(text, "Ada", Random(1))


def test_a_statement_is_read_as_auxiliary_verb_object_and_tails():
    (statement,) = statements("I bought a red car in Oslo last week.")

    assert statement == Statement(
        "", "did", "buy", "a red car", (Tail("in", "in Oslo"), Tail("last", "last week"))
    )
    # What is said answers what, where and when.
    assert asked("I bought a red car in Oslo last week.") == [
        "What did Ada buy in Oslo?",
        "Did Ada buy a red car in Oslo?",
        "Where did Ada buy a red car?",
        "When did Ada buy a red car in Oslo?",
    ]


@pytest.mark.parametrize(("text", "question"), CASES["asked"])
def test_questions_of_other_kinds(text, question):
    assert question in asked(text)


def test_what_says_nothing_of_the_speaker_is_asked_nothing():
    for text in ("Do I like it?", "I think so.", "I don't eat meat.", "Great!", ""):
        assert asked(text) == []
    # What belongs to the speaker is asked in the third person.
    assert all(" my " not in f" {question} " for question in asked("I sold my old bike in May."))


@pytest.mark.parametrize(("turn", "question"), CASES["reported"])
def test_a_question_put_to_somebody_becomes_one_about_them(turn, question):
    assert reported_question(turn, "Ada") == question


def test_a_question_that_needs_its_context_is_left():
    for turn in ("What about you?", "Do you like that one?", "I like tea.", "Is it far from here?"):
        assert reported_question(turn, "Ada") is None
    assert reported_question("", "Ada") is None


def test_verbs_have_a_plain_form():
    past = {"went": "go", "hiked": "hike", "planned": "plan", "tried": "try", "worked": "work"}
    assert {verb: plain_form_of_past(verb) for verb in past} == past
    # A word that is not a past tense has none.
    assert plain_form_of_past("beach") is None
    third = {"teaches": "teach", "has": "have", "plays": "play"}
    assert {verb: plain_form_of_third_person(verb) for verb in third} == third


def test_rewording_replaces_known_words_only():
    assert reworded("the mom went", Random(1), share=1.0) == "the mother went"
