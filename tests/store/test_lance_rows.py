"""Memories as rows and as one text, and the rows of older tables."""

from dataclasses import replace
from datetime import UTC, datetime

import lancedb
import pytest
from hypothesis import given
from tests.store.store_contract import CONTRACT_IDENTITY, contract_record, contract_row, full_record
from tests.store.strategies import records

from ekphory.filters.tree import And, Comparison, Field
from ekphory.store.lance import LanceStore
from ekphory.store.lance_rows import (
    decode_record,
    encode_record,
    leave_out_empty_columns,
    table_schema,
)


@given(record=records())
def test_every_memory_comes_back_equal(record):
    assert decode_record(encode_record(record)) == record


def test_moments_and_predictions_are_kept_in_the_text():
    # A moment keeps its microseconds before and after 1970.
    early = datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    late = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    record = replace(contract_record(1), at=early, expires_at=late)
    assert decode_record(encode_record(record)) == record
    # What was predicted is named in the text where something was.
    both = replace(contract_record(1), predicted=frozenset({"type", "importance"}))
    assert '"predicted":["importance","type"]' in encode_record(both)
    assert "predicted" not in encode_record(contract_record(1))
    old = '{"id":"a","text":"b","at":0,"created_at":0,"type":"semantic","importance":0.75}'
    assert decode_record(old).predicted == frozenset()


PREDICTED = replace(contract_record(1), importance=0.75, predicted=frozenset({"importance"}))


def open_store(path, *, version=CONTRACT_IDENTITY.schema_version):
    return LanceStore.open(str(path), replace(CONTRACT_IDENTITY, schema_version=version))


def test_a_store_of_the_first_schema_is_read_and_written_but_keeps_no_predictions(store_path):
    open_store(store_path, version=1).append([contract_row(1, PREDICTED)])
    reopened = open_store(store_path)
    reopened.append([contract_row(2, contract_record(2))])
    assert reopened.identity.schema_version == 1
    assert "record" not in lancedb.connect(store_path).open_table("memories").schema.names
    kept = replace(PREDICTED, predicted=frozenset())
    assert reopened.fetch([1, 2]) == {1: kept, 2: contract_record(2)}


def test_in_a_store_of_the_second_schema_every_importance_counts_as_given(store_path):
    open_store(store_path, version=2).append([contract_row(1, PREDICTED)])
    reopened = open_store(store_path)
    reopened.append([contract_row(2, replace(PREDICTED, id="2"))])
    assert reopened.scan(And(())).importance_given.tolist() == [True, True]
    assert reopened.fetch([1]) == {1: PREDICTED}


# A batch is written without the columns that are empty in it; they read as missing.

SCHEMA = table_schema(CONTRACT_IDENTITY)
IN_SESSION = Comparison(Field("session"), "eq", "s1")


@pytest.fixture
def store(tmp_path):
    """Return a store of one memory with every field, between two with few."""
    store = open_store(tmp_path)
    for row in (contract_row(1), contract_row(2, full_record()), contract_row(3, windows=2)):
        store.append([row])
    return store


def test_columns_without_a_value_are_left_out_of_a_batch():
    # Columns without a value are left out.
    left_out = set(SCHEMA.names) - set(leave_out_empty_columns([contract_row(1)], SCHEMA).names)
    assert {"session", "agent", "user", "sequence", "path", "superseded_by"} <= left_out
    assert not {"id", "text", "at", "key", "vector", "terms", "record"} & left_out
    # One memory that has a value keeps the column for the batch.
    batch = [contract_row(1), contract_row(2, replace(contract_record(2), session="s1"))]
    assert "session" in leave_out_empty_columns(batch, SCHEMA).names


@pytest.mark.parametrize("state", ["as written", "repaired"])
def test_memories_come_back_whole_and_by_filters_on_what_others_left_out(store, state):
    if state == "repaired":
        store.repair()
    found = store.select(And(()), order="written")
    assert found == [contract_record(1), full_record(), contract_record(3)]
    assert [record.id for record in store.select(IN_SESSION, order="written")] == ["full"]
    assert store.scan_vectors(And(())).keys.tolist() == [1, 2, 3, 3]
