"""A batch is written without the columns of which it says nothing; they read as missing."""

from dataclasses import replace

import pytest

from ekphory.filters.tree import And, Comparison, Field
from ekphory.store.lance import LanceStore
from ekphory.store.lance_rows import table_schema, leave_out_empty_columns
from ekphory.testing.store_contract import (
    CONTRACT_IDENTITY,
    contract_record,
    contract_row,
    full_record,
)

SCHEMA = table_schema(CONTRACT_IDENTITY)
IN_SESSION = Comparison(Field("session"), "eq", "s1")


@pytest.fixture
def store(tmp_path):
    """Return a store of one memory with every field, between two with few."""
    store = LanceStore.open(str(tmp_path), CONTRACT_IDENTITY)
    store.append([contract_row(1)])
    store.append([contract_row(2, full_record())])
    store.append([contract_row(3, windows=2)])
    return store


def test_columns_without_a_value_are_left_out():
    left_out = set(SCHEMA.names) - set(leave_out_empty_columns([contract_row(1)], SCHEMA).names)
    assert {"session", "agent", "user", "sequence", "path", "superseded_by"} <= left_out
    assert not {"id", "text", "at", "key", "vector", "terms", "record"} & left_out


def test_one_memory_that_has_a_value_keeps_the_column_for_the_batch():
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
