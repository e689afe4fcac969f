import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

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

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\ufeff"))
MARKED = {"utf-8-sig": b"", "utf-16": b"", "utf-16-be": codecs.BOM_UTF16_BE, "utf-32": b""}


def message(data, encoding=None):
    problem = decode(data, encoding)
    assert isinstance(problem, Problem)
    return problem.message


@given(TEXTS, st.sampled_from(sorted(MARKED)))
def test_a_byte_order_mark_says_the_encoding(text, encoding):
    assert decode(MARKED[encoding] + text.encode(encoding), None) == text


def test_line_ends_of_every_system_become_line_feeds():
    assert decode(b"one\r\ntwo\rthree\n", None) == "one\ntwo\nthree\n"


def test_latin_1_is_refused_with_the_line_and_a_remedy():
    assert message(b"good\ncaf\xe9 au lait\n") == (
        "line 2 is not UTF-8 (b'\\xe9 au'). Save the file as UTF-8, or name its encoding with "
        "--encoding."
    )


def test_a_named_encoding_is_for_files_that_are_not_utf_8():
    assert decode(b"caf\xe9", "cp1252") == "café"
    assert decode("café".encode(), "cp1252") == "café"


def test_a_named_encoding_that_does_not_fit_is_told():
    assert message(b"ab\x81", "cp1252") == "byte 3 is not cp1252. Save the file as UTF-8."


@pytest.mark.parametrize("data", [b"\x7fELF\x00\x01\xff", "text".encode("utf-16-le")])
def test_nul_bytes_are_told_as_binary_or_unmarked_utf_16(data):
    assert message(data).startswith("holds NUL bytes: it is binary, or UTF-16 without")


def test_utf_16_without_a_mark_can_be_named():
    assert decode("text".encode("utf-16-le"), "utf-16-le") == "text"


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
    return [(block.kind, block.first, block.last) for block in parse_markdown(text)]


def only(text):
    (found,) = parse_markdown(text)
    return found


def test_blocks_have_their_kind_and_their_lines():
    prose = "# Title\n\nSome text\nin two lines.\n\n- a\n- b\n\n"
    assert kinds(prose + "```\nx\n\ny\n```\n\n| a |\n|---|\n| 1 |\n") == [
        ("heading", 1, 1),
        ("paragraph", 3, 4),
        ("list", 6, 7),
        ("code", 9, 13),
        ("table", 15, 17),
    ]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_the_text_of_a_block_is_that_of_its_lines(text):
    lines = text.split("\n")
    for block in parse_markdown(text):
        if isinstance(block, Block):
            there = "\n".join(line.rstrip() for line in lines[block.first - 1 : block.last])
            assert block.text == there.rstrip()


def test_a_heading_has_a_level_and_a_title_without_marks():
    heading = only("### The `run` *command*, see [docs](x.md) ###")
    assert (heading.level, heading.title) == (3, "The run command, see docs")


def test_a_name_with_underscores_keeps_them_in_a_title():
    assert only("# __max_tokens__ and *other_names*").title == "max_tokens and other_names"


def test_a_text_of_megabytes_is_parsed_in_portions_with_the_same_blocks():
    section = "# Day\n\n" + "The boiler is on. " * 2_000 + "\n\n```\n# no heading\n```\n\n"
    found = list(parse_markdown(section * 80))
    assert [block.kind for block in found] == ["heading", "paragraph", "code"] * 80
    assert [block.first for block in found] == [
        first for number in range(80) for first in (1 + 8 * number, 3 + 8 * number, 5 + 8 * number)
    ]


def test_an_underlined_heading_is_a_heading():
    heading = only("Usage\n=====")
    assert (heading.level, heading.title, heading.last) == (1, "Usage", 2)


def test_a_hash_in_a_fence_is_no_heading():
    assert kinds("```\n# not a heading\n```") == [("code", 1, 3)]


def test_a_heading_inside_a_quote_opens_no_section():
    assert kinds("> # quoted\n> text") == [("paragraph", 1, 2)]


def test_front_matter_is_one_block_and_no_heading():
    front, heading = parse_markdown("---\ntitle: Boiler\ntags: [home]\n---\n# Boiler\n")
    assert (front.kind, front.text) == ("code", "---\ntitle: Boiler\ntags: [home]\n---")
    assert (heading.kind, heading.first) == ("heading", 5)


def test_badges_are_left_out():
    assert only("[![build](b.svg)](ci) ![cover](c.svg)") == SkippedPart("pictures and tags only")


def test_a_comment_is_left_out():
    assert only("<!-- toc -->") == SkippedPart("comment")


def test_a_list_of_links_within_the_page_is_left_out_as_its_table_of_contents():
    assert only("- [Install](#install)\n  - [Linux](#linux)\n") == SkippedPart("table of contents")
    assert isinstance(only("- [Install](install.md)\n"), Block)


def test_a_text_of_nothing_but_brackets_takes_no_quadratic_time():
    assert only("[" * 200_000).last == 1


def test_blank_lines_part_paragraphs():
    first, second = parse_paragraphs("One line.\nAnd another.\n\n \nSecond.\n")
    assert (first.text, first.first, first.last) == ("One line.\nAnd another.", 1, 2)
    assert (second.text, second.first, second.last) == ("Second.", 5, 5)


def test_a_text_of_blank_lines_has_no_paragraph():
    assert list(parse_paragraphs("\n \n\t\n")) == []


def rst(file, text):
    return list(read_restructured_text(file("a.rst", text), ReadingSettings()))


def test_underlined_titles_are_headings_in_the_order_of_their_styles(file):
    found = rst(file, "====\nBook\n====\n\nIntro.\n\nPart\n----\nText.\n\nOther\n-----\n")
    assert [(block.level, block.title) for block in found if block.kind == "heading"] == [
        (1, "Book"),
        (2, "Part"),
        (2, "Other"),
    ]
    assert [(block.text, block.first) for block in found if block.kind == "paragraph"] == [
        ("Intro.", 5),
        ("Text.", 9),
    ]


def test_a_line_shorter_than_its_title_underlines_nothing(file):
    (block,) = rst(file, "A long sentence.\n---\n")
    assert block.kind == "paragraph"
