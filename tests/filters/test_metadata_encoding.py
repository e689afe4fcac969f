import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.errors import InvalidInput
from ekphory.types import decode_metadata, encode_metadata

from .strategies import keys, scalars


def test_every_key_carries_the_kind_of_its_value():
    encoded = encode_metadata({"city": "Rome", "age": 3, "size": 1.5, "done": True})
    assert json.loads(encoded) == {"s:city": "Rome", "n:age": 3, "n:size": 1.5, "b:done": True}


@given(metadata=st.dictionaries(keys, scalars, max_size=6))
def test_decoding_gives_back_what_was_encoded_with_its_kinds(metadata):
    decoded = decode_metadata(encode_metadata(metadata))
    assert decoded == metadata
    assert {key: type(value) for key, value in decoded.items()} == {
        key: type(value) for key, value in metadata.items()
    }


@pytest.mark.parametrize("text", [None, "", "{}"])
def test_nothing_decodes_to_no_metadata(text):
    assert decode_metadata(text) == {}


@pytest.mark.parametrize("number", [2**53, -(2**53)])
def test_whole_numbers_up_to_two_to_the_53_are_kept(number):
    assert decode_metadata(encode_metadata({"n": number})) == {"n": number}


@pytest.mark.parametrize(
    "value",
    [
        2**53 + 1,
        pytest.param(-(10**5000), id="huge"),
        float("nan"),
        float("inf"),
        None,
        ["a"],
        {"a": 1},
        b"a",
        "\x00",
        "\ud800",
    ],
)
def test_a_value_that_cannot_be_filtered_exactly_is_refused_by_its_key(value):
    with pytest.raises(InvalidInput) as caught:
        encode_metadata({"ok": 1, "bad key": value})
    assert caught.value.field == "metadata.bad key"


@pytest.mark.parametrize("key", ["", "a\x00", "\udfff", 3, None])
def test_an_unusable_key_is_refused(key):
    with pytest.raises(InvalidInput, match="not a usable metadata key"):
        encode_metadata({key: 1})
