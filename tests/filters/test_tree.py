"""The rules that every filter obeys, and metadata as it is stored."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.errors import FilterError, InvalidInput
from ekphory.filters.tree import (
    And,
    Comparison,
    Contains,
    Field,
    In,
    IsNull,
    MetadataField,
    Not,
    Or,
    check_filter,
)
from ekphory.types import decode_metadata, encode_metadata

from .strategies import keys, scalars

LEAF = IsNull(Field("session"))


def test_an_alias_becomes_the_name_of_the_field():
    aliased = Comparison(Field("producer_id"), "eq", "Anna")
    assert check_filter(aliased) == Comparison(Field("producer"), "eq", "Anna")


@pytest.mark.parametrize(
    "value",
    [
        "2026-05-01T10:00:00Z",
        datetime(2026, 5, 1, 10),
        datetime(2026, 5, 1, 12, tzinfo=timezone(timedelta(hours=2))),
    ],
)
def test_a_moment_becomes_utc(value):
    checked = check_filter(Comparison(Field("at"), "ge", value))
    expected = Comparison(Field("at"), "ge", datetime(2026, 5, 1, 10, tzinfo=UTC))
    assert repr(checked) == repr(expected)


@pytest.mark.parametrize("joined", [And((LEAF,)), Or((LEAF,)), And((Or((LEAF,)),))])
def test_joining_one_filter_is_that_filter(joined):
    assert check_filter(joined) == LEAF


def test_lists_of_children_and_values_become_tuples():
    tree = And([LEAF, In(MetadataField("x"), [1, 2])])
    assert check_filter(tree) == And((LEAF, In(MetadataField("x"), (1, 2))))


def test_the_second_reading_of_a_clock_hour_is_dropped_in_utc():
    checked = check_filter(Comparison(Field("at"), "eq", datetime(2026, 5, 1, 10, fold=1)))
    expected = Comparison(Field("at"), "eq", datetime(2026, 5, 1, 10, tzinfo=UTC))
    assert repr(checked) == repr(expected)


def test_negative_zero_becomes_zero():
    checked = check_filter(Comparison(MetadataField("x"), "ge", -0.0))
    assert repr(checked) == repr(Comparison(MetadataField("x"), "ge", 0.0))


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("producer = 'a'", "not a filter"),
        (None, "not a filter"),
        (Not("x"), "not a filter"),
        (And(LEAF), "not a tuple of filters"),
        (And("ab"), "not a tuple of filters"),
        (In(Field("id"), "abc"), "not a tuple of values"),
        (IsNull("session"), "not a field"),
        (IsNull(Field(3)), "not a field"),
        (IsNull(Field("id` IS NULL OR `id")), "unknown field"),
        (IsNull(MetadataField("")), "not a field"),
        (IsNull(MetadataField("\ud800")), "lone surrogate"),
        (Comparison(Field("id"), "like", "a"), "unknown operator"),
        (Comparison(Field("id"), "eq", None), "id holds a text"),
        (Comparison(Field("id"), "eq", b"a"), "id holds a text"),
        (Comparison(Field("sequence"), "eq", True), "sequence holds a number"),
        (Comparison(Field("sequence"), "eq", 1e300), "beyond 2"),
        (Comparison(Field("importance"), "gt", float("nan")), "not a finite number"),
        (Comparison(MetadataField("x"), "eq", None), "texts, numbers and booleans only"),
        (Comparison(MetadataField("x"), "eq", 10**5000), "whole number beyond"),
        (Comparison(MetadataField("x"), "eq", "a" * 10_001), "longer than 10000"),
        (Contains(Field("sequence"), "1"), "holds no text"),
        (Contains(Field("text"), 1), "CONTAINS needs a text"),
    ],
)
def test_a_tree_built_wrongly_is_a_filter_error(tree, message):
    with pytest.raises(FilterError, match=message):
        check_filter(tree)


def nested(depth):
    tree = LEAF
    for _ in range(depth):
        tree = Not(tree)
    return tree


def test_a_tree_nested_fifty_deep_is_accepted():
    assert check_filter(nested(50)) == nested(50)


@pytest.mark.parametrize("depth", [51, 5_000])
def test_a_tree_nested_deeper_is_refused(depth):
    with pytest.raises(FilterError, match="nested deeper than 50"):
        check_filter(nested(depth))


@pytest.mark.parametrize("children", [1_001, 100_000])
def test_a_tree_of_more_than_a_thousand_conditions_is_refused(children):
    with pytest.raises(FilterError, match="more than 1000 values"):
        check_filter(Or((LEAF,) * children))


# Metadata.


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
