"""Which lines of a model's answer are other wordings of the query."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.retrieval.stages.query import read_wordings, wording_prompt

QUERY = "When does the key rotate?"


def found(answer, count=3):
    return read_wordings(answer, query=QUERY, count=count)


def test_the_prompt_says_how_many():
    system, user = wording_prompt(QUERY, count=3)
    assert "3 other wordings" in system.content
    assert user.content == QUERY


def test_each_line_is_a_wording():
    assert found("rotation day of the key\nkey rotation schedule") == (
        "rotation day of the key",
        "key rotation schedule",
    )


@pytest.mark.parametrize(
    "line",
    [
        "1. key rotation schedule",
        "2) key rotation schedule",
        "- key rotation schedule",
        "• key rotation schedule",
        '"key rotation schedule"',
        "  * 'key rotation schedule'  ",
    ],
)
def test_numbers_bullets_and_quotes_are_taken_off(line):
    assert found(line) == ("key rotation schedule",)


@pytest.mark.parametrize(
    "line",
    [
        "too short",
        "x" * 301,
        "Note: these keep the meaning",
        "Here are three wordings:",
        "These keep the meaning of it",
        "I rephrased the question below",
        "The above keep the meaning of it",
        "Alternative wordings follow now",
        "when does the KEY rotate",
        "",
    ],
)
def test_comments_repetitions_and_what_is_too_short_or_long_are_refused(line):
    assert found(line) == ()


def test_a_wording_comes_once():
    assert found("key rotation schedule\nKey rotation, schedule!") == ("key rotation schedule",)


def test_no_more_come_than_were_asked_for():
    assert len(found("wording number one\nwording number two\nwording number six", count=2)) == 2


def test_thoughts_are_no_wordings():
    assert found("<think>the user wants a schedule\n</think>key rotation schedule") == (
        "key rotation schedule",
    )


@given(st.text())
def test_any_answer_can_be_read(answer):
    assert all(10 <= len(each) <= 300 for each in found(answer))
