import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import read_tables, spell

from documents.making import read
from ekphory.documents.blocks import Block, Problem, Section, SkippedPart, estimate_tokens
from ekphory.documents.passages import (
    PASSAGE_TOKENS,
    WHOLE_TOKENS,
    Passage,
    cut,
    explain_exclusion,
    passages,
)
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.text import parse_markdown
from ekphory.documents.tree import READERS, find_reader
from ekphory.errors import InvalidInput

SIGNS = st.sampled_from(list("ab .!?\n-字。、👩\u200d\u0301"))
LONG_TEXTS = st.text(SIGNS, min_size=1, max_size=400).filter(str.strip)
KINDS = st.sampled_from(["paragraph", "list", "table", "code"])


def pieces(text, limit=10, kind="paragraph"):
    block = Block(text, kind, 1, 1 + text.count("\n"), verbatim=True)
    return list(cut(block, limit))


def cut_texts(text, limit=10, kind="paragraph"):
    return [piece.text for piece in pieces(text, limit, kind)]


@given(LONG_TEXTS, KINDS, st.integers(5, 60))
def test_no_character_but_blanks_is_lost(text, kind, limit):
    assert "".join("".join(cut_texts(text, limit, kind)).split()) == "".join(text.split())


@given(st.text(st.sampled_from(list("ab .!?\n-字。、")), min_size=1), KINDS, st.integers(5, 60))
def test_no_piece_is_longer_than_the_limit(text, kind, limit):
    assert all(estimate_tokens(piece) <= limit for piece in cut_texts(text, limit, kind))


@given(LONG_TEXTS, KINDS)
def test_the_lines_of_a_piece_are_where_its_text_is(text, kind):
    lines = text.split("\n")
    for piece in pieces(text, kind=kind):
        there = "\n".join(lines[piece.first - 1 : piece.last])
        assert piece.text in there


@pytest.mark.parametrize(
    ("kind", "limit", "between", "parts"),
    [
        ("paragraph", 10, " ", ["The roof is new. It was made in May.", "The cellar is dry!"]),
        # Chinese and Japanese are cut after their own full stops.
        ("paragraph", 10, "", ["猫は魚が好きです。", "夜は庭で遊びます。"]),
        # A sentence that is too long is cut between words.
        ("paragraph", 4, " ", ["one two three", "four five six"]),
        # A list is cut before an item, and code at blank lines before it is at others.
        ("list", 8, "\n", ["- the first item\n  goes on", "- the second item\n  goes on too"]),
        ("code", 8, "\n\n", ["def one():\n    return 1", "def two():\n    return 2"]),
    ],
)
def test_each_kind_is_cut_where_its_parts_end(kind, limit, between, parts):
    assert cut_texts(between.join(parts), limit=limit, kind=kind) == parts


def test_pieces_have_about_equal_lengths():
    sentences = "Every word of it counts here. " * 11
    lengths = [len(text) for text in cut_texts(sentences, limit=75)]
    assert max(lengths) - min(lengths) <= len("Every word of it counts here. ")


def test_an_emoji_of_several_signs_stays_whole():
    family = "👩\u200d👩\u200d👧"
    assert set("".join(cut_texts(family * 30, limit=5)).split(family)) == {""}
    assert all(text.startswith("👩") for text in cut_texts(family * 30, limit=5))
    # Only the first piece does not continue another.
    found = pieces("One is here. Two is there.", limit=4)
    assert [piece.continues for piece in found] == [False, True]


SENTENCE = "The boiler in the cellar was repaired in May by Anna. "


def of(text):
    return list(passages(parse_markdown(text)))


def test_a_section_begins_with_its_heading_and_names_all_above_it():
    first, second = of("# House\n\nIt is old.\n\n## Cellar\n\nIt is dry.\n")
    assert (first.text, first.section.headings) == ("# House\n\nIt is old.", ("House",))
    assert (second.text, second.section.headings[1:]) == ("## Cellar\n\nIt is dry.", ("Cellar",))
    assert (second.first, second.last) == (5, 7)
    # A heading closes all sections of its level and below.
    found = of("# A\n\na\n\n### B\n\nb\n\n## C\n\nc\n")
    assert [one.section.headings for one in found] == [("A",), ("A", "B"), ("A", "C")]
    # Sections with the same titles are told apart.
    first, second = of("# Log\n\nfirst day\n\n# Log\n\nsecond day\n")
    assert (first.section.occurrence, second.section.occurrence) == (0, 1)
    # A title that is a whole paragraph is cut short.
    (found,) = of("# " + "word " * 100 + "\n\ntext\n")
    assert len(found.section.headings[0]) == 200


def test_paragraphs_are_gathered_up_to_the_limit():
    found = of("\n\n".join([SENTENCE * 4] * 9))
    assert len(found) == 3
    assert all(100 < estimate_tokens(one.text) <= PASSAGE_TOKENS for one in found)
    # A long paragraph is cut after a sentence, without overlap.
    found = of(SENTENCE * 40)
    assert all(one.text.endswith("Anna.") for one in found)
    assert " ".join(one.text for one in found) == (SENTENCE * 40).strip()


def test_a_fence_longer_than_a_passage_is_kept_whole_up_to_a_bound():
    line = "print('the boiler is on')\n"
    code = f"```\n{line * 60}```"
    assert PASSAGE_TOKENS < estimate_tokens(code) < WHOLE_TOKENS
    assert [found.text for found in of(code)] == [code]
    found = of(f"```\n{line * 200}```")
    assert len(found) > 4
    assert all(one.text.endswith(("on')", "```")) for one in found)


def test_a_short_rest_of_a_section_joins_the_passage_before_and_one_of_another_does_not():
    (found,) = of(SENTENCE * 14 + "\n\nThat is all.")
    assert found.text.endswith("Anna.\n\nThat is all.")
    assert len(of("# A\n\n" + SENTENCE * 14 + "\n\n# B\n\nThat is all.")) == 2


def test_what_is_no_block_is_passed_on_in_its_place():
    blocks = [Block("one", "paragraph", 1, 1), Problem("broken", 2), SkippedPart("navigation")]
    assert [type(found) for found in passages(blocks)] == [Problem, SkippedPart, type(of("x")[0])]


def reason(text, *kinds):
    kept = frozenset(kinds or ("paragraph",))
    return explain_exclusion(Passage(text, Section(), 1, 1, kept))


TABLES = read_tables(__file__)
EXCLUDED = [(text, reason) for reason, texts in TABLES["excluded"].items() for text in texts]


@pytest.mark.parametrize(
    ("text", "expected"), [*EXCLUDED, *((kept, None) for kept in TABLES["kept"])]
)
def test_what_answers_no_question_is_left_out_and_a_sentence_of_any_script_kept(text, expected):
    assert reason(spell(text)) == expected


def test_one_word_below_its_heading_is_a_fact_and_a_heading_alone_is_left_out():
    found = of("# A\n# B\n\nthe text\n\n## Port\n\n8080\n")
    assert [explain_exclusion(one) for one in found] == ["heading alone", None, None]
    # Code may be mostly punctuation.
    assert reason("{{ (a) => [[b]], ... }} // -> ==> x y", "code") is None


WITHOUT = """
import json, sys
from pathlib import Path
sys.modules.update(dict.fromkeys(("pypdfium2", "docx", "lxml")))
from ekphory.documents.tree import READERS
print(json.dumps({reader.name: str(reader.missing_extra() or "") for reader in READERS}))
"""


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.html", "a.docx", "a.pdf", "a.rst"])
def test_an_empty_file_of_any_kind_and_one_that_went_away_are_told(file, tmp_path, name):
    (problem,) = read(file(name, b""))
    assert isinstance(problem, Problem | SkippedPart)
    (problem,) = read(tmp_path / "gone.md")
    assert problem.message == "No such file or directory. Check that it exists and may be read."


def test_the_end_of_a_name_says_the_reader_in_any_case(file, tmp_path):
    assert find_reader(tmp_path / "A.PDF").name == "PDF"
    assert find_reader(tmp_path / "a.cob") is None
    # A document without text says so, or why.
    for content in ("\n \n", "<!-- nothing -->"):
        assert len(read(file("a.md", content))) == 1


def test_an_unknown_encoding_is_refused():
    with pytest.raises(InvalidInput, match="encoding='klingon': no such encoding"):
        ReadingSettings(encoding="klingon")


def test_readers_whose_libraries_are_missing_name_the_extra():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, check=True)
    said = json.loads(done.stdout)
    needed, remedy = "needs an optional dependency.", "pip install 'ekphory[docs]'"
    assert said["PDF"] == f"Reading PDF files {needed} Install it with: {remedy}"
    assert {name for name, message in said.items() if message} == {"PDF", "Word", "HTML"}
    assert [reader.missing_extra() for reader in READERS] == [None] * len(READERS)
