"""Memories of a scope are read from memory, whichever way they came there."""

import pytest

from ekphory.filters.tree import And, Comparison, Field
from ekphory.store.lance_snapshot import RecordCache, ScopeRecords
from ekphory.testing.store_contract import (
    CONTRACT_IDENTITY,
    contract_record,
    contract_row,
    owned_record,
)
from store.counting_store import CountingStore

EVERYTHING = And(())


@pytest.fixture
def store():
    store = CountingStore(CONTRACT_IDENTITY)
    store.append([contract_row(key) for key in range(1, 301)])
    return store


def records_of(store, scope=EVERYTHING) -> ScopeRecords:
    return ScopeRecords(store, scope, RecordCache(store))


def test_a_single_read_loads_nothing_else(store):
    records = records_of(store)
    assert records.fetch([2, 1]) == {1: contract_record(1), 2: contract_record(2)}
    assert (records.nbytes, store.read) == (0, [[2, 1]])


def test_from_the_second_read_on_nothing_is_asked_of_the_store(store):
    records = records_of(store)
    records.fetch([1])
    assert records.fetch([3, 1]) == {1: contract_record(1), 3: contract_record(3)}
    assert records.fetch([4]) == {4: contract_record(4)}
    assert store.read == [[1]]


def test_a_few_later_memories_are_read_one_by_one(store):
    records = records_of(store)
    records.fetch([1])
    records.fetch([1])
    store.append([contract_row(400)])
    assert records.fetch([1, 400])[400] == contract_record(400)
    assert store.read == [[1], [400]]


def test_many_later_memories_are_loaded_together(store):
    records = records_of(store)
    records.fetch([1])
    records.fetch([1])
    store.append([contract_row(key) for key in range(400, 600)])
    assert len(records.fetch(range(400, 600))) == 200
    assert store.read == [[1]]


def test_what_is_gone_is_left_out(store):
    store.delete([2])
    records = records_of(store)
    records.fetch([1])
    assert list(records.fetch([1, 2, 3])) == [1, 3]


def test_nothing_of_another_scope_is_loaded(store):
    store.append([contract_row(700, owned_record(700, "alice"))])
    records = records_of(store, Comparison(Field("user"), "eq", "alice"))
    records.fetch([700])
    records.fetch([700])
    assert records.nbytes == 8
