"""Every filter finds the same memories in LanceDB as the reference semantics say."""

from dataclasses import fields
from itertools import count

import lancedb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lancedb.index import BTree

from ekphory.filters.lance_sql import matches, to_lance_sql
from ekphory.filters.tree import FIELD_KINDS, check_filter
from ekphory.types import MemoryRecord, decode_metadata, encode_metadata

from .strategies import filters, records

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
