"""Records by key are read once and kept for a while."""

import pytest

from ekphory.store.lance_snapshot import RecordCache
from ekphory.testing.store_contract import (
    CONTRACT_IDENTITY,
    contract_record,
    contract_row,
    history_record,
    successor_record,
)
from store.counting_store import CountingStore


@pytest.fixture
def store():
    store = CountingStore(CONTRACT_IDENTITY)
    store.append([contract_row(key) for key in (1, 2, 3)])
    return store


def test_a_record_is_read_from_the_store_once(store):
    cache = RecordCache(store)
    assert cache.fetch([1, 2]) == {1: contract_record(1), 2: contract_record(2)}
    assert cache.fetch([2, 3]) == {2: contract_record(2), 3: contract_record(3)}
    assert store.read == [[1, 2], [3]]


def test_what_is_not_there_is_left_out_and_looked_for_again(store):
    cache = RecordCache(store)
    assert cache.fetch([9]) == {}
    store.append([contract_row(9)])
    assert list(cache.fetch([9])) == [9]


def test_a_full_cache_lets_the_least_recently_used_go(store):
    cache = RecordCache(store, size=2)
    for key in (1, 2, 1, 3, 1, 2):
        cache.fetch([key])
    assert store.read == [[1], [2], [3], [2]]


def test_more_records_than_the_cache_holds_come_all_the_same(store):
    assert sorted(RecordCache(store, size=1).fetch([1, 2, 3])) == [1, 2, 3]


def test_what_was_changed_since_the_scan_is_given_as_it_was(store):
    store.supersede(1, history_record(1), contract_row(4, successor_record(1)))
    assert RecordCache(store).fetch([1]) == {1: contract_record(1)}
