"""Which memories a conversation already holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.prompting.block import already_said, measure_overlap


@pytest.mark.parametrize(
    ("memory", "message", "share"),
    [
        ("Mara likes hiking", "Does Mara like HIKING?", 2 / 3),
        ("Mara likes hiking", "The weather is fine", 0.0),
        ("we are on it", "we are on it", 0.0),
        ("", "anything said", 0.0),
        ("会议改到星期四", "会议是星期四吗", 3 / 6),
        ("記憶 memory", "memory", 1 / 2),
    ],
)
def test_the_share_counts_words_of_four_letters_and_pairs_without_spaces(memory, message, share):
    assert measure_overlap(memory, message) == pytest.approx(share)


def test_a_memory_is_said_when_more_than_the_limit_stands_in_one_message():
    texts = ["alpha beta gamma delta", "alpha beta epsilon zeta theta", "kappa"]
    assert already_said(texts, ["Alpha and beta."]) == [True, False, False]
    assert already_said(texts, ["Alpha and beta."], most_shared=0.3) == [True, True, False]


def test_two_messages_are_not_added_up():
    assert already_said(["alpha beta gamma delta epsilon"], ["alpha beta", "gamma"]) == [False]


def test_without_messages_nothing_is_said():
    assert already_said(["alpha"], []) == [False]


@given(st.text(), st.text())
def test_an_overlap_is_a_share(text, message):
    assert 0 <= measure_overlap(text, message) <= 1


@given(st.text(alphabet="abcdé会议 ", min_size=1))
def test_a_text_with_tokens_lies_wholly_in_itself(text):
    assert measure_overlap(text, f"so: {text} !") in (0.0, 1.0)
