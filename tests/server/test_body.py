"""What a body holds, told while it arrives."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.server.limits import BodyScan, Trouble

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def told(*pieces, most_values=10, most_depth=3):
    scan = BodyScan(most_values=most_values, most_depth=most_depth)
    for piece in pieces:
        trouble = scan.feed(piece)
        if trouble is not None:
            return trouble
    return scan.end()


def test_a_list_with_as_many_elements_as_allowed_is_taken():
    assert told(b"[1,2,3,4,5,6,7,8,9,10]") is None


def test_one_element_more_is_refused():
    assert told(b"[1,2,3,4,5,6,7,8,9,10,11]") is Trouble.MANY_VALUES


def test_many_closing_brackets_are_refused():
    assert told(b"]" * 21) is Trouble.MANY_VALUES


def test_commas_and_brackets_within_texts_do_not_count():
    assert told(b'["[[[[[{{{{,,,,,,,,,,,,,, \\" ,,,,,,,,,,,, \\\\", 1]') is None


def test_a_list_nested_too_deeply_is_refused():
    assert told(b"[[[]]]") is None
    assert told(b"[[[[]]]]") is Trouble.DEEP


def test_a_text_that_goes_on_in_the_next_piece_stays_a_text():
    assert told(b'["a', b",,,,,,,,,,,,,,,,,,", b'"]') is None


def test_an_escape_that_is_cut_in_two_stays_an_escape():
    assert told(b'["a\\', b'",,,,,,,,,,,,,,,,"]') is None


@pytest.mark.parametrize(
    "half", [b"\\ud800", b"\\uDFFF x", b"\xed\xa0\x80", b"\\ud83d\\ud83d\\ude00"]
)
def test_half_of_a_character_is_found_wherever_the_body_is_cut(half):
    body = b'["' + b"x" * 20 + half + b"y" * 20 + b'"]'
    for place in range(len(body)):
        assert told(body[:place], body[place:]) is Trouble.HALF_CHARACTER, place


@pytest.mark.parametrize("whole", [b"\\ud83d\\ude00", b"\\\\ud800", b"ud800", b"\\u00e9"])
def test_a_whole_character_is_taken_wherever_the_body_is_cut(whole):
    body = b'["' + b"x" * 20 + whole + b"y" * 20 + b'"]'
    for place in range(len(body)):
        assert told(body[:place], body[place:]) is None, place


@given(JSON, st.integers(1, 7))
def test_every_json_of_few_values_is_taken_in_pieces_of_any_length(value, length):
    body = json.dumps(value).encode()
    pieces = [body[start : start + length] for start in range(0, len(body), length)]
    assert told(*pieces, most_values=200, most_depth=50) is None
