"""The rules that every filter obeys, and metadata as it is stored."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
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


def moment(value):
    return Comparison(Field("at"), "ge", value)


def nested(depth):
    tree = LEAF
    for _ in range(depth):
        tree = Not(tree)
    return tree


TEN_O_CLOCK = moment(datetime(2026, 5, 1, 10, tzinfo=UTC))


@pytest.mark.parametrize(
    ("tree", "checked"),
    [
        (Contains(Field("producer_id"), "Anna"), Contains(Field("producer"), "Anna")),
        (moment("2026-05-01T10:00:00Z"), TEN_O_CLOCK),
        (moment(datetime(2026, 5, 1, 10)), TEN_O_CLOCK),
        (moment(datetime(2026, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))), TEN_O_CLOCK),
        # The second reading of an hour of the clock is dropped in UTC.
        (moment(datetime(2026, 5, 1, 10, fold=1)), TEN_O_CLOCK),
        (And((LEAF,)), LEAF),
        (Or((LEAF,)), LEAF),
        (And((Or((LEAF,)),)), LEAF),
        (And([LEAF, In(MetadataField("x"), [1, 2])]), And((LEAF, In(MetadataField("x"), (1, 2))))),
        (Comparison(MetadataField("x"), "ge", -0.0), Comparison(MetadataField("x"), "ge", 0.0)),
        (nested(50), nested(50)),
    ],
)
def test_a_filter_that_was_checked_is_written_in_one_way(tree, checked):
    assert repr(check_filter(tree)) == repr(checked)


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
        (Contains(Field("text"), 1, whole=True), "HAS needs a text"),
        (nested(51), "nested deeper than 50"),
        (nested(5_000), "nested deeper than 50"),
        (Or((LEAF,) * 1_001), "more than 1000 values"),
        (Or((LEAF,) * 100_000), "more than 1000 values"),
    ],
)
def test_a_tree_built_wrongly_is_a_filter_error(tree, message):
    with pytest.raises(FilterError, match=message):
        check_filter(tree)


# Metadata.


def test_every_key_carries_the_kind_of_its_value():
    encoded = encode_metadata({"city": "Rome", "age": 3, "size": 1.5, "done": True})
    assert json.loads(encoded) == {"s:city": "Rome", "n:age": 3, "n:size": 1.5, "b:done": True}


@given(metadata=st.dictionaries(keys, scalars, max_size=6))
@example(metadata={"largest": 2**53, "least": -(2**53)})
def test_decoding_gives_back_what_was_encoded_with_its_kinds(metadata):
    decoded = decode_metadata(encode_metadata(metadata))
    assert decoded == metadata
    assert {key: type(value) for key, value in decoded.items()} == {
        key: type(value) for key, value in metadata.items()
    }


@pytest.mark.parametrize("text", [None, "", "{}"])
def test_nothing_decodes_to_no_metadata(text):
    assert decode_metadata(text) == {}


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
