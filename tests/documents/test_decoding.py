import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.documents.blocks import Problem
from ekphory.documents.text import LARGEST_TEXT, decode, read_text

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
