"""Recalled memories are known when they come back, and everything else stays as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.prompting.block import BlockSettings, prompt_block
from ekphory.prompting.recall_block import CLOSING, OPENING, SECURITY_COMMENT, strip_recall_blocks
from prompting.hits import hit, results

BLOCK = prompt_block([hit("I prefer Python"), hit("a < b & c")], BlockSettings()).text


UNDONE = BLOCK.replace("&lt;", "<").replace("&amp;", "&")
OPENED = BLOCK.removesuffix(CLOSING)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (BLOCK, ""),
        (f"Context:\n\n{BLOCK}\n\nWhat now?  ", "Context:\nWhat now?  "),
        (f"{BLOCK} one {BLOCK}\ntwo\n{BLOCK}", "one\ntwo"),
        (" ".join(BLOCK.split()), ""),
        (BLOCK.replace("\n", "\r\n"), ""),
        (f"before {UNDONE} after", "before\nafter"),
        (f"{OPENED}And what do you think? 1 < 2", "And what do you think? 1 < 2"),
        (prompt_block([], BlockSettings()).text, ""),
    ],
    ids=[
        *("alone", "with text around it", "several times", "on one line", "with other line ends"),
        *("with its escaping undone", "without its closing tag", "that says nothing was found"),
    ],
)
def test_a_block_is_removed_and_what_stands_around_it_kept(text, left):
    assert strip_recall_blocks(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "We wrap them in <relevant-memories> tags.",
        "<relevant-memories>\nmine\n</relevant-memories>",
        "<relevant-memories>\n<!-- SECURITY: of another program -->\n</relevant-memories>",
        SECURITY_COMMENT,
        '<memory index="1" source="a">text</memory>',
        "  two spaces, \n\n two lines \t",
    ],
)
def test_text_without_our_mark_is_kept_verbatim(text):
    assert strip_recall_blocks(text) == text


def test_a_megabyte_of_openings_is_read_at_once():
    opening = f"{OPENING}{SECURITY_COMMENT.split(':')[0]}: ekphory recalled these memories "
    assert strip_recall_blocks(opening * 10_000) == ""


@given(results(), st.integers(min_value=0))
def test_a_rendered_result_that_was_cut_off_leaves_nothing(hits, cut):
    text = prompt_block(hits, BlockSettings(max_tokens=10_000)).text
    marked = text.index("memories.") + len("memories")
    assert strip_recall_blocks(text[: max(marked, cut % (len(text) + 1))]) == ""


@given(results(), st.text(alphabet="ab<>&/!- \n"), st.text(alphabet="ab<>&/!- \n"))
def test_text_around_a_rendered_result_is_kept(hits, before, after):
    text = prompt_block(hits, BlockSettings(max_tokens=10_000)).text
    kept = [part for part in (before.rstrip(), after.lstrip()) if part]
    assert strip_recall_blocks(before + text + after) == "\n".join(kept)


@given(st.text())
def test_any_other_text_is_kept(text):
    assert strip_recall_blocks(text) == text
