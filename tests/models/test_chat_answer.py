import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.models.chat import find_json_object, strip_thinking


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<think>hm\nhm</think>\n\nTea.", "Tea."),
        ("<think>a</think>Tea<think>b</think> time", "Tea time"),
        ("hm hm</think> Tea.", "Tea."),
        ("<think>a<think>b</think>c</think>Tea.", "Tea."),
        ("<think>never done", ""),
        ("  Tea.  ", "Tea."),
    ],
)
def test_what_was_thought_aloud_is_left_out(text, kept):
    assert strip_thinking(text) == kept


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure!\n```json\n{"a": {"b": 2}}\n```\nDone.', {"a": {"b": 2}}),
        ('The set {x} is {"a": 1} and {"a": 2}', {"a": 1}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        ('{"a": NaN}', None),
        ('{"a": 1', None),
        ("[1, 2]", None),
        ("no", None),
        ("{" * 100_000, None),
        ('{"a":' * 100_000, None),
    ],
)
def test_the_first_object_is_found_wherever_it_stands(text, found):
    assert find_json_object(text) == found


@given(
    st.text(st.characters(exclude_characters="{")),
    st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.booleans())),
    st.text(),
)
def test_an_object_between_words_comes_back_as_it_was(before, content, after):
    assert find_json_object(before + json.dumps(content) + after) == content
