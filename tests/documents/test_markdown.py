from hypothesis import given
from hypothesis import strategies as st

from ekphory.documents.blocks import Block, LeftOut
from ekphory.documents.text import blocks_of

PIECES = ("# A\n", "B\n===\n", "- a\n", "  b\n", "```\n", "\n", "| a |\n|---|\n", "> q\n", "x y\n",
          "1. n\n", "    c\n", "---\n", "<b>\n", "[l](u)\n", "*e*\n", "\t\n")  # fmt: skip


def kinds(text):
    return [(block.kind, block.first, block.last) for block in blocks_of(text)]


def only(text):
    (found,) = blocks_of(text)
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
    for block in blocks_of(text):
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
    found = list(blocks_of(section * 80))
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
    front, heading = blocks_of("---\ntitle: Boiler\ntags: [home]\n---\n# Boiler\n")
    assert (front.kind, front.text) == ("code", "---\ntitle: Boiler\ntags: [home]\n---")
    assert (heading.kind, heading.first) == ("heading", 5)


def test_badges_are_left_out():
    assert only("[![build](b.svg)](ci) ![cover](c.svg)") == LeftOut("pictures and tags only")


def test_a_comment_is_left_out():
    assert only("<!-- toc -->") == LeftOut("comment")


def test_a_list_of_links_within_the_page_is_left_out_as_its_table_of_contents():
    assert only("- [Install](#install)\n  - [Linux](#linux)\n") == LeftOut("table of contents")
    assert isinstance(only("- [Install](install.md)\n"), Block)


def test_a_text_of_nothing_but_brackets_takes_no_quadratic_time():
    assert only("[" * 200_000).last == 1
