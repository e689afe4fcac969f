import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import read_tables

from ekphory.documents.blocks import Block, Problem, SkippedPart
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.text import (
    LARGEST_TEXT,
    decode,
    parse_markdown,
    parse_paragraphs,
    read_restructured_text,
    read_text,
)

CASES = read_tables(__file__)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\ufeff"))
MARKED = {"utf-8-sig": b"", "utf-16": b"", "utf-16-be": codecs.BOM_UTF16_BE, "utf-32": b""}


@given(TEXTS, st.sampled_from(sorted(MARKED)))
def test_a_byte_order_mark_says_the_encoding(text, encoding):
    assert decode(MARKED[encoding] + text.encode(encoding), None) == text


NUL = "holds NUL bytes: it is binary, or UTF-16 without"
NAMED = "line 2 is not UTF-8 (b'\\xe9 au'). Save the file as UTF-8, or name its encoding with --enc"


@pytest.mark.parametrize(
    ("data", "encoding", "message"),
    [
        (b"good\ncaf\xe9 au lait\n", None, NAMED),
        (b"ab\x81", "cp1252", "byte 3 is not cp1252. Save the file as UTF-8."),
        (b"\x7fELF\x00\x01\xff", None, NUL),
        ("text".encode("utf-16-le"), None, NUL),
    ],
)
def test_what_cannot_be_decoded_is_refused_with_the_place_and_a_remedy(data, encoding, message):
    problem = decode(data, encoding)
    assert isinstance(problem, Problem)
    assert problem.message.startswith(message)


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (b"caf\xe9", "cp1252", "café"),
        ("café".encode(), "cp1252", "café"),
        ("text".encode("utf-16-le"), "utf-16-le", "text"),
        (b"one\r\ntwo\rthree\n", None, "one\ntwo\nthree\n"),
    ],
)
def test_a_named_encoding_is_for_files_that_are_not_utf_8(data, encoding, text):
    assert decode(data, encoding) == text


def test_a_file_that_is_too_large_is_refused_unread(tmp_path):
    path = tmp_path / "log.txt"
    with path.open("wb") as stream:
        stream.truncate(2 * 2**30)
    problem = read_text(path, None)
    assert problem == Problem("2,048 MB is more than the 64 MB that are read. Split it.")
    assert LARGEST_TEXT == 64 * 2**20


PIECES = ("# A\n", "B\n===\n", "- a\n", "  b\n", "```\n", "\n", "| a |\n|---|\n", "> q\n", "x y\n",
          "1. n\n", "    c\n", "---\n", "<b>\n", "[l](u)\n", "*e*\n", "\t\n")  # fmt: skip


def kinds(text):
    found = parse_markdown(text)
    return [(each.kind, each.first, each.last) for each in found if isinstance(each, Block)]


def only(text):
    (found,) = parse_markdown(text)
    return found


def test_blocks_have_their_kind_and_their_lines():
    prose = "# Title\n\nSome text\nin two lines.\n\n- a\n- b\n\n"
    assert kinds(prose + "```\nx\n\ny\n```\n\n| a |\n|---|\n| 1 |\n") == [
        *(("heading", 1, 1), ("paragraph", 3, 4), ("list", 6, 7)),
        *(("code", 9, 13), ("table", 15, 17)),
    ]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_the_text_of_a_block_is_that_of_its_lines(text):
    lines = text.split("\n")
    for block in parse_markdown(text):
        if isinstance(block, Block):
            there = "\n".join(line.rstrip() for line in lines[block.first - 1 : block.last])
            assert block.text == there.rstrip()


@pytest.mark.parametrize(("text", "level", "title"), CASES["headings"])
def test_a_heading_has_a_level_and_a_title_without_marks(text, level, title):
    heading = only(text)
    assert (heading.level, heading.title) == (level, title)


def test_a_text_of_megabytes_is_parsed_in_portions_with_the_same_blocks():
    section = "# Day\n\n" + "The boiler is on. " * 2_000 + "\n\n```\n# no heading\n```\n\n"
    found = list(parse_markdown(section * 80))
    assert [block.kind for block in found] == ["heading", "paragraph", "code"] * 80
    lines = [8 * number + line for number in range(80) for line in (1, 3, 5)]
    assert [block.first for block in found] == lines


@pytest.mark.parametrize(
    ("text", "expected"), [*CASES["no_headings"], ("[" * 200_000, [["paragraph", 1, 1]])]
)
def test_a_hash_in_a_fence_or_a_quote_and_front_matter_are_no_headings(text, expected):
    assert kinds(text) == [tuple(each) for each in expected]


@pytest.mark.parametrize(("text", "reason"), CASES["left_out"])
def test_what_tells_nothing_is_left_out(text, reason):
    assert only(text) == SkippedPart(reason)
    assert isinstance(only("- [Install](install.md)\n"), Block)


def test_blank_lines_part_paragraphs():
    first, second = parse_paragraphs("One line.\nAnd another.\n\n \nSecond.\n")
    assert (first.text, first.first, first.last) == ("One line.\nAnd another.", 1, 2)
    assert (second.text, second.first, second.last) == ("Second.", 5, 5)
    assert list(parse_paragraphs("\n \n\t\n")) == []


def test_underlined_titles_are_headings_in_the_order_of_their_styles(file):
    text = "====\nBook\n====\n\nIntro.\n\nPart\n----\nA long sentence.\n---\n\nOther\n-----\n"
    found = list(read_restructured_text(file("a.rst", text), ReadingSettings()))
    titles = [(block.level, block.title) for block in found if block.kind == "heading"]
    assert titles == [(1, "Book"), (2, "Part"), (2, "Other")]
    # A line shorter than its title underlines nothing.
    paragraphs = [(block.text, block.first) for block in found if block.kind == "paragraph"]
    assert paragraphs == [("Intro.", 5), ("A long sentence.\n---", 9)]
