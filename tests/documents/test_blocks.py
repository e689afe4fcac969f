from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from ekphory.documents.blocks import Section, format_place, join_passages, parent_id
from ekphory.documents.passages import passages
from ekphory.documents.text import parse_markdown
from ekphory.types import MemoryRecord

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
SENTENCES = st.sampled_from(
    [
        "The boiler is on. ",
        "Anna repaired it in May.\n",
        "\n\n",
        "- an item\n",
        "猫は魚が好きです。",
    ]
)


def child(text, lines, sequence=0):
    return MemoryRecord(
        id=str(sequence), text=text, at=MOMENT, created_at=MOMENT, lines=lines, sequence=sequence
    )


def children_of(text):
    return [
        child(one.text, format_place(one.first, one.last, "line"), place)
        for place, one in enumerate(passages(parse_markdown(text)))
    ]


def test_children_are_joined_in_their_order():
    assert join_passages([child("second", "3-3", 1), child("first", "1-1", 0)]) == "first\n\nsecond"


def test_adjoining_lines_stay_adjoining():
    assert join_passages([child("a", "1-1", 0), child("b", "2-2", 1)]) == "a\nb"


def test_parts_of_one_line_are_joined_as_its_script_is_written():
    assert join_passages([child("One.", "1-1", 0), child("Two.", "1-1", 1)]) == "One. Two."
    assert join_passages([child("猫。", "1-1", 0), child("魚。", "1-1", 1)]) == "猫。魚。"


def test_a_sentence_that_goes_on_within_a_page_is_one():
    assert join_passages([child("the rent", "p. 3", 0), child("is 850", "p. 3", 1)]) == (
        "the rent is 850"
    )
    assert join_passages([child("It rose.", "p. 3", 0), child("It fell.", "p. 3", 1)]) == (
        "It rose.\n\nIt fell."
    )


def test_no_children_have_no_text():
    assert join_passages([]) == ""


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
