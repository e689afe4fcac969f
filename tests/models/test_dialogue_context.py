"""The dialogue before a question, as texts or as messages."""

import pytest

from ekphory.errors import InvalidInput
from ekphory.models.reranker import read_dialogue


def test_texts_stay_as_they_are():
    assert read_dialogue(["Ann: I ran", " Great! "]) == ("Ann: I ran", "Great!")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "I ran"},
        {"producer": "user", "text": "I ran"},
        {"role": "human", "producer": "user", "content": "I ran", "at": "2026-01-01"},
    ],
)
def test_a_message_is_told_with_its_speaker(message):
    assert read_dialogue([message]) == ("user: I ran",)


def test_a_message_without_a_speaker_is_its_text():
    assert read_dialogue([{"content": "I ran"}]) == ("I ran",)


def test_turns_that_say_nothing_are_left_out():
    assert read_dialogue(["", {"role": "user", "content": " "}, "a"]) == ("a",)


@pytest.mark.parametrize(
    ("context", "problem"),
    [
        ("I ran", "must be a list"),
        ({"role": "user", "content": "a"}, "must be a list"),
        (None, "must be a list"),
        ([3], "turn 0"),
        (["a", {"role": "user"}], "turn 1"),
        ([{"content": [{"type": "image"}]}], "turn 0"),
        ([{"role": 3, "content": "a"}], "turn 0"),
    ],
)
def test_what_is_no_dialogue_is_refused(context, problem):
    with pytest.raises(InvalidInput, match=problem):
        read_dialogue(context)
