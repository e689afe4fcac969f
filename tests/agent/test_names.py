"""Which words of a text are names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.agent.question import names_in


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
