"""Which words of a text are names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import read_cases

from ekphory.agent.question import is_relation, names_in, read_question, relation

CASES = read_cases(__file__)


def texts(text, style="memory"):
    return [name.text for name in names_in(text, style=style)]


@pytest.mark.parametrize(("text", "names"), CASES["memories"])
def test_names_of_a_memory(text, names):
    assert texts(text) == names


@pytest.mark.parametrize(("question", "names"), CASES["titles"])
def test_names_of_a_question_keep_what_belongs_to_a_title(question, names):
    assert texts(question, "question") == names


@given(st.text(max_size=300), st.sampled_from(["question", "memory"]))
def test_a_name_stands_where_it_says(text, style):
    for name in names_in(text, style=style):
        assert text[name.start : name.end] == name.text


def branch(question):
    (only,) = read_question(question).branches
    return only


@pytest.mark.parametrize(("question", "anchor", "steps", "asked"), CASES["chains"])
def test_a_chain_goes_from_the_name_outward(question, anchor, steps, asked):
    read = branch(question)
    assert (read.anchor, list(read.steps), read.asked_of("Ida")) == (anchor, steps, asked)


@pytest.mark.parametrize(("question", "anchors", "steps"), CASES["parallel"])
def test_things_beside_each_other_are_looked_up_each(question, anchors, steps):
    reading = read_question(question)
    assert reading.kind == "parallel"
    assert [each.anchor for each in reading.branches] == anchors
    assert {each.steps for each in reading.branches} == {tuple(steps)}


@pytest.mark.parametrize("question", CASES["single"])
def test_a_question_of_one_lookup_is_read_as_one(question):
    assert read_question(question).kind == "single"


def test_a_relation_has_cues_and_a_path_and_says_whom_it_leads_to():
    assert relation("dads").cues[:3] == ("dad", "father", "son of")
    assert relation("illustrator").cues[:2] == ("illustrator", "illustrated by")
    assert relation("maternal grandfather").through == ("mother", "father")
    assert (relation("aunt").is_person, relation("city").is_person) == (True, False)


@given(st.text(max_size=200))
def test_any_text_can_be_read_and_asked_further(question):
    for read in read_question(question).branches:
        assert "Ida {}" in read.asked_of("Ida {}")


@pytest.mark.parametrize(
    ("word", "known"),
    [("father", True), ("Wives", True), ("grandchildren", True), ("illustrator", True),
     ("number", False), ("roof", False)],
)  # fmt: skip
def test_a_relation_is_listed_or_a_doer(word, known):
    assert is_relation(word) is known
