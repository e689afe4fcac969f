"""Of a value that LangGraph stores, its texts are searched."""

import pytest

from ekphory.errors import InvalidInput
from ekphory.frameworks.langgraph import searchable_text

VALUE = {
    "title": "Plan",
    "steps": [{"do": "pack", "hours": 2}, {"do": "leave", "done": False}],
    "note": None,
}


def test_of_the_whole_value_every_leaf_is_a_line_with_its_name():
    assert searchable_text(VALUE, ("$",)) == (
        "title: Plan\nsteps.do: pack\nsteps.hours: 2\nsteps.do: leave\nsteps.done: false"
    )


def test_a_single_text_stands_alone():
    assert searchable_text({"content": {"text": "She likes tea"}}, ("$",)) == "She likes tea"


def test_fields_are_named_by_paths():
    assert searchable_text(VALUE, ("title", "steps[*].do")) == "Plan\npack\nleave"
    assert searchable_text(VALUE, ("steps[-1].do",)) == "leave"


@pytest.mark.parametrize("fields", [("missing",), ("note",), ("title.part",), ()])
def test_without_text_there_is_nothing_to_search(fields):
    assert searchable_text(VALUE, fields) is None


@pytest.mark.parametrize("value", [{}, {"a": None}, {"a": "  "}, {"a": []}])
def test_an_empty_value_has_nothing_to_search(value):
    assert searchable_text(value, ("$",)) is None


def test_characters_that_cannot_be_stored_are_searched_as_others():
    assert searchable_text({"a": "one\x00two \ud800"}, ("$",)) == "one two ?"


def test_more_text_than_a_memory_holds_is_refused_with_the_remedy():
    with pytest.raises(InvalidInput, match=r"has 1,000,001 characters.*index="):
        searchable_text({"a": "x" * 1_000_001}, ("$",))
