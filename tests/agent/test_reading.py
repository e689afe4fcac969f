"""What a question is read to need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.agent.question import read_question


def branch(question):
    (only,) = read_question(question).branches
    return only


@pytest.mark.parametrize(
    ("question", "anchor", "steps", "asked"),
    [
        ("Where was the father of Rembrandt's wife born?", "Rembrandt", ("wife", "father"),
         "Where was Ida born?"),
        ("What is the current company of the spouse of the CEO of Acme?", "Acme",
         ("ceo", "spouse"), "company of Ida"),
        ("Who is the mother of the director of film The Long Road?", "The Long Road",
         ("director",), "mother of Ida"),
        ("What sport does Nils's girlfriend's brother do?", "Nils", ("girlfriend", "brother"),
         "What sport does Ida do?"),
        ("When was the company that published Night Ferry founded?", "Night Ferry",
         ("published",), "When was Ida founded?"),
        ("Where does my sister's boss live?", "sister", ("boss",), "Where does Ida live?"),
        ("Which award did the author of Pia's favourite book win?", "Pia favourite book",
         ("author",), "Which award did Ida win?"),
        ("Where was the illustrator of Night Ferry born?", "Night Ferry", ("illustrator",),
         "Where was Ida born?"),
    ],
)  # fmt: skip
def test_a_chain_goes_from_the_name_outward(question, anchor, steps, asked):
    read = branch(question)
    assert (read.anchor, read.steps, read.asked_of("Ida")) == (anchor, steps, asked)


@pytest.mark.parametrize(
    ("question", "anchors", "steps"),
    [
        ("Who is older, Anna Kowalski or Boris?", ("Anna Kowalski", "Boris"), ()),
        ("Were Otto and Klara born in the same year?", ("Otto", "Klara"), ()),
        ("Does Ada have the same nationality as Jo Lee?", ("Ada", "Jo Lee"), ()),
        ("Which film has the director who died first, Night Ferry or The Road?",
         ("Night Ferry", "The Road"), ("director",)),
        ("Are the director of film Night Ferry and the director of film The Road from the same "
         "country?", ("Night Ferry", "The Road"), ("director",)),
    ],
)  # fmt: skip
def test_things_beside_each_other_are_looked_up_each(question, anchors, steps):
    reading = read_question(question)
    assert reading.kind == "parallel"
    assert tuple(each.anchor for each in reading.branches) == anchors
    assert {each.steps for each in reading.branches} == {steps}


@pytest.mark.parametrize(
    "question",
    [
        "Where are the spare keys?",
        "When did Melanie and Caroline go camping?",
        "What did Anna say to Ben on May 8th?",
        "What is the birthplace of Rembrandt?",
        "Who is the director of film The Long Road?",
        "How many weeks are between 3 March and 4 April?",
        "what is the name of her dog",
        "你好，钥匙在哪里？",
        "",
    ],
)
def test_a_question_of_one_lookup_is_read_as_one(question):
    assert read_question(question).kind == "single"


def test_a_description_without_a_name_is_an_open_chain():
    assert read_question("Where does the man who fixed our roof live?").kind == "open chain"


@given(st.text(max_size=200))
def test_any_text_can_be_read_and_asked_further(question):
    for read in read_question(question).branches:
        assert "Ida {}" in read.asked_of("Ida {}")
