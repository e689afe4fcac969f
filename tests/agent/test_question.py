"""Which words of a text are names."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.agent.question import names_in, read_question
from ekphory.agent.relations import (
    SHAPES,
    describes_one_through_another,
    is_relation,
    kinds_of,
    relation,
)


def texts(text, style="memory"):
    return [name.text for name in names_in(text, style=style)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Rembrandt married Saskia van Uylenburgh in 1634.",
         ["Rembrandt", "Saskia van Uylenburgh"]),
        ("The score is by A. R. Rahman and J.S. Bach.", ["A. R. Rahman", "J.S. Bach"]),
        ("She met Anna's boss on Monday in May.", ["Anna"]),
        ("I think I'll ask Dr. Novak.", ["Dr. Novak"]),
        ("its CEO is Annelies Brandsma.", ["Annelies Brandsma"]),
        ("nothing here is a name", []),
    ],
)  # fmt: skip
def test_names_of_a_memory(text, names):
    assert texts(text) == names


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who directed Lola (1981 Film)?", ["Lola (1981 Film)"]),
        ("Is Prison Stories: Women On The Inside older?", ["Prison Stories: Women On The Inside"]),
        ("Are Stanari and Krasnoye, Belgorod near?", ["Stanari", "Krasnoye, Belgorod"]),
        ("Who made The Courtship of Eddie's Father?", ["The Courtship of Eddie's Father"]),
        ("What did the CEO of Acme say?", ["Acme"]),
    ],
)  # fmt: skip
def test_names_of_a_question_keep_what_belongs_to_a_title(question, names):
    assert texts(question, "question") == names


@given(st.text(max_size=300), st.sampled_from(["question", "memory"]))
def test_a_name_stands_where_it_says(text, style):
    for name in names_in(text, style=style):
        assert text[name.start : name.end] == name.text


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


def test_a_relation_has_cues_and_a_path_and_one_without_a_name_is_open():
    # A description without a name is an open chain.
    assert read_question("Where does the man who fixed our roof live?").kind == "open chain"
    # A relation has cues a path and says whom it leads to.
    assert relation("dads").cues[:3] == ("dad", "father", "son of")
    assert relation("illustrator").cues[:2] == ("illustrator", "illustrated by")
    assert relation("maternal grandfather").through == ("mother", "father")
    assert (relation("aunt").is_person, relation("city").is_person) == (True, False)


@given(st.text(max_size=200))
def test_any_text_can_be_read_and_asked_further(question):
    for read in read_question(question).branches:
        assert "Ida {}" in read.asked_of("Ida {}")


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["example"])
def test_the_example_of_a_shape_is_an_open_chain_that_has_it(shape):
    assert describes_one_through_another(shape["example"])
    assert re.search(shape["pattern"], kinds_of(shape["example"]))


@pytest.mark.parametrize(
    ("word", "known"),
    [("father", True), ("Wives", True), ("grandchildren", True), ("illustrator", True),
     ("number", False), ("roof", False)],
)  # fmt: skip
def test_a_relation_is_listed_or_a_doer(word, known):
    assert is_relation(word) is known
