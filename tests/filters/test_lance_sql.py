"""Filters as SQL, and the reference of what they mean."""

import json
from dataclasses import fields
from datetime import UTC, datetime
from itertools import count

import lancedb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lancedb.index import BTree
from tests.cases import read_cases

from ekphory.errors import FilterError
from ekphory.filters.grammar import parse_filter
from ekphory.filters.lance_sql import matches, to_lance_sql
from ekphory.filters.tree import (
    FIELD_KINDS,
    And,
    Comparison,
    Field,
    IsNull,
    MetadataField,
    Not,
    Or,
    check_filter,
)
from ekphory.types import MemoryRecord, decode_metadata, encode_metadata

from .strategies import filters, records

CASES = read_cases(__file__)


@pytest.mark.parametrize(("text", "sql"), CASES["sql"])
def test_a_filter_compiles_to_quoted_sql(text, sql):
    assert to_lance_sql(parse_filter(text)) == sql


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    columns = {
        "id": pa.array(["a", "b", "c"]),
        "producer": pa.array(["x", "' OR TRUE --", None], pa.utf8()),
        "sequence": pa.array([1, 2**53 + 1, None], pa.int64()),
        "metadata": pa.array(
            [json.dumps({"s:k') OR TRUE --": "v"}), json.dumps({"n:k": -1.5}), "{}"], pa.json_()
        ),
    }
    database = lancedb.connect(tmp_path_factory.mktemp("sql"))
    return database.create_table("memories", pa.table(columns))


def ids(table, tree):
    rows = table.search().where(to_lance_sql(tree)).select(["id"]).limit(10).to_list()
    return sorted(row["id"] for row in rows)


ATTACKS = CASES["attacks"]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_value_never_becomes_sql(table, attack):
    expected = ["b"] if attack == "' OR TRUE --" else []
    assert ids(table, Comparison(Field("producer"), "eq", attack)) == expected
    assert ids(table, Comparison(MetadataField("k"), "eq", attack)) == []


@pytest.mark.parametrize("attack", ["k') OR TRUE --", *ATTACKS])
def test_a_metadata_key_never_becomes_sql(table, attack):
    expected = ["a"] if attack == "k') OR TRUE --" else []
    assert ids(table, Comparison(MetadataField(attack), "eq", "v")) == expected


@pytest.mark.parametrize("name", ["id` = 'a' OR `id", "metadata", "ID", "id --", "row", "_rowid"])
def test_a_field_name_outside_the_list_is_refused(name):
    with pytest.raises(FilterError, match="unknown field"):
        to_lance_sql(IsNull(Field(name)))


def test_a_sequence_beyond_two_to_the_53_still_compares_exactly(table):
    assert ids(table, Comparison(Field("sequence"), "gt", 2**53)) == ["b"]
    assert ids(table, Comparison(Field("sequence"), "eq", 2**53)) == []


def alternating(depth):
    tree = Comparison(MetadataField("k"), "lt", 0)
    for level in range(depth):
        true_of_all = Comparison(Field("id"), "ne", f"none{level}")
        true_of_none = Comparison(Field("producer"), "eq", f"none{level}")
        tree = And((tree, true_of_all)) if level % 2 else Or((tree, true_of_none))
    return tree


def negated(tree, times):
    for _ in range(times):
        tree = Not(tree)
    return tree


NO_PRODUCER = IsNull(Field("producer"))
WIDEST = And(
    (Not(NO_PRODUCER), *(Comparison(Field("id"), "ne", f"none{number}") for number in range(999)))
)


@pytest.mark.parametrize(
    ("tree", "found"),
    [
        (alternating(50), ["b"]),
        (Not(alternating(49)), ["a", "c"]),
        (negated(NO_PRODUCER, 50), ["c"]),
        (WIDEST, ["a", "b"]),
        (Not(WIDEST), ["c"]),
    ],
)
def test_lance_reads_the_deepest_and_the_widest_filters(table, tree, found):
    assert ids(table, tree) == found


# The reference.

MEMORY = MemoryRecord(
    id="m1",
    text="It's 100% sure: C:\\temp",
    at=datetime(2026, 5, 1, 10, tzinfo=UTC),
    created_at=datetime(2026, 5, 2, tzinfo=UTC),
    producer="Anna",
    importance=0.5,
    sequence=3,
    metadata={"age": 3, "height": 1.75, "city": "Rome", "done": True, "two": "2"},
)


SO = CASES["true of the memory"]
NOT_SO = CASES["not true of the memory"]


@pytest.mark.parametrize(
    ("condition", "is_so"), [(each, True) for each in SO] + [(each, False) for each in NOT_SO]
)
def test_a_memory_matches_what_is_so_and_the_negation_of_all_else(condition, is_so):
    assert matches(parse_filter(condition), MEMORY) is is_so
    assert matches(parse_filter(f"NOT ({condition})"), MEMORY) is not is_so


# Every filter finds the same memories in LanceDB as the reference says.

ARROW_TYPES = {
    "text": pa.utf8(),
    "number": pa.float64(),
    "integer": pa.int64(),
    "moment": pa.timestamp("us", tz="UTC"),
}
INDEXED = ["producer", "user", "at", "sequence", "importance"]
thorough = settings(
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
table_numbers = count()


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return lancedb.connect(tmp_path_factory.mktemp("filters"))


def write_table(database, memories):
    columns = {
        name: pa.array([getattr(memory, name) for memory in memories], ARROW_TYPES[kind])
        for name, kind in FIELD_KINDS.items()
    }
    columns["metadata"] = pa.array([encode_metadata(m.metadata) for m in memories], pa.json_())
    columns["row"] = pa.array(range(len(memories)), pa.int64())
    return database.create_table(f"memories_{next(table_numbers)}", pa.table(columns))


def found_in_lance(table, tree):
    rows = table.search().where(to_lance_sql(tree)).select(["row"]).limit(1_000).to_list()
    return sorted(row["row"] for row in rows)


def found_by_reference(memories, tree):
    checked = check_filter(tree)
    return [row for row, memory in enumerate(memories) if matches(checked, memory)]


def assert_agreement(table, memories, trees):
    for tree in trees:
        expected = found_by_reference(memories, tree)
        assert found_in_lance(table, tree) == expected, to_lance_sql(tree)
        assert table.count_rows(to_lance_sql(tree)) == len(expected)


many_records = st.lists(records(), min_size=8, max_size=40)
many_filters = st.lists(filters, min_size=6, max_size=12)


@pytest.mark.slow
@thorough
@given(memories=many_records, trees=many_filters)
def test_lance_and_the_reference_find_the_same(database, memories, trees):
    assert_agreement(write_table(database, memories), memories, trees)


@settings(thorough, max_examples=6)
@given(memories=many_records, trees=many_filters)
def test_scalar_indices_change_nothing(database, memories, trees):
    table = write_table(database, memories)
    for column in INDEXED:
        table.create_index(column, config=BTree())
    assert_agreement(table, memories, trees)


@settings(thorough, max_examples=10)
@given(memories=many_records)
def test_metadata_comes_back_from_lance_as_it_was(database, memories):
    stored = write_table(database, memories).to_arrow()["metadata"].to_pylist()
    expected = [dict(memory.metadata) for memory in memories]
    assert [decode_metadata(text) for text in stored] == expected
    assert [list(map(type, decode_metadata(text).values())) for text in stored] == [
        [type(metadata[key]) for key in decode_metadata(text)]
        for text, metadata in zip(stored, expected, strict=True)
    ]


def test_every_field_of_a_memory_but_metadata_and_what_was_predicted_can_be_filtered():
    known = {field.name for field in fields(MemoryRecord)}
    assert set(FIELD_KINDS) == known - {"metadata", "predicted"}
