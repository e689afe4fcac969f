from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import read_tables

from ekphory.documents.blocks import Section, format_place, join_passages, parent_id
from ekphory.documents.passages import passages
from ekphory.documents.text import parse_markdown
from ekphory.types import MemoryRecord

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
SENTENCES = st.sampled_from(
    ["The boiler is on. ", "Anna did it in May.\n", "\n\n", "- an item\n", "猫は魚が好きです。"]
)


def child(text, lines, sequence=0):
    place = {"lines": lines, "sequence": sequence}
    return MemoryRecord(id=str(sequence), text=text, at=MOMENT, created_at=MOMENT, **place)


def children_of(text):
    found = enumerate(passages(parse_markdown(text)))
    return [child(one.text, format_place(one.first, one.last, "line"), n) for n, one in found]


@pytest.mark.parametrize(("children", "joined"), read_tables(__file__)["joined"])
def test_children_are_joined_in_their_order_as_they_stood(children, joined):
    assert join_passages([child(*each) for each in children]) == joined


@given(st.lists(SENTENCES, min_size=1, max_size=120).map("".join).filter(str.strip))
def test_the_children_of_a_text_give_its_words_again(text):
    assert join_passages(children_of(text)).split() == text.split()


def test_a_whole_section_of_markdown_comes_back_to_the_letter():
    text = "## Boiler\n\n" + "It is on. " * 60 + "\nIt is warm.\n\n```\nstart\n\nstop\n```"
    assert join_passages(children_of(text)) == text.replace(". \n", ".\n")


def test_the_id_of_a_section_depends_on_its_document_titles_and_occurrence():
    section = Section(("House", "Cellar"), 0)
    ids = {
        parent_id("notes/a.md", section),
        parent_id("notes/b.md", section),
        parent_id("notes/a.md", Section(("House",), 0)),
        parent_id("notes/a.md", replace(section, occurrence=1)),
    }
    assert len(ids) == 4
    assert parent_id("notes/a.md", section) == parent_id("notes/a.md", section)
