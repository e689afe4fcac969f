"""What is held of a store in memory: records by key, and blocks of a scope."""

from threading import Event

import numpy as np
import pytest
from tests.store.in_memory import InMemoryStore
from tests.store.store_contract import (
    CONTRACT_IDENTITY,
    contract_record,
    contract_row,
    history_record,
    owned_record,
    successor_record,
)

from ekphory.errors import StoreError
from ekphory.filters.tree import And, Comparison, Field
from ekphory.store.blocks import RecordCache, ScopeBlocks, ScopeRecords

LARGE = 5_000


class CountingStore(InMemoryStore):
    """Notes which keys were read one by one."""

    def __init__(self, identity):
        super().__init__(identity)
        self.read = []

    def fetch(self, keys):
        self.read.append(list(keys))
        return super().fetch(keys)


EVERYTHING = And(())


# Records by key are read once and kept for a while.


def counting_store(*keys):
    store = CountingStore(CONTRACT_IDENTITY)
    store.append([contract_row(key) for key in keys])
    return store


@pytest.fixture
def store():
    return counting_store(1, 2, 3)


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
    assert sorted(cache.fetch([1, 2, 3])) == [1, 2, 3]


def test_what_was_changed_since_the_scan_is_given_as_it_was(store):
    store.supersede(1, history_record(1), contract_row(4, successor_record(1)))
    assert RecordCache(store).fetch([1]) == {1: contract_record(1)}


# Blocks of a scope: none at the first use, one from the second on, another when much is new.


@pytest.fixture
def two_rows():
    return counting_store(5, 6)


@pytest.fixture
def blocks(two_rows):
    """Blocks after the second use."""
    return blocks_of(two_rows, uses=2)


def blocks_of(store, *, uses):
    found = ScopeBlocks(lambda last: store.scan_records(EVERYTHING, after_key=last))
    for _ in range(uses):
        found.prepare(LARGE)
    found.settle()
    return found


def keys(blocks, wanted):
    return [block.keys.tolist() for block in blocks.holding(np.array(wanted))]


def test_the_second_use_loads_the_scope_and_no_other_does(two_rows):
    once, twice = blocks_of(two_rows, uses=1), blocks_of(two_rows, uses=2)
    assert (keys(once, [5]), once.nbytes) == ([], 0)
    assert (keys(twice, [5]), twice.nbytes) == ([[5, 6]], 16)
    two_rows.append([contract_row(7)])
    twice.prepare(LARGE)
    assert keys(twice, [5]) == [[5, 6]]
    assert blocks_of(counting_store(), uses=3).holding(np.array([1])) == ()


def test_what_changes_while_the_scope_is_read_is_changed_in_what_was_read(two_rows):
    begun, go_on = Event(), Event()

    def scan(last):
        block = two_rows.scan_records(EVERYTHING, after_key=last)
        begun.set()
        go_on.wait(10)
        return block

    found = ScopeBlocks(scan)
    found.prepare(LARGE)
    found.prepare(LARGE)
    assert begun.wait(10)
    # No search waits for it.
    assert keys(found, [5]) == []
    found.change(lambda block: block.without(np.array([5])))
    go_on.set()
    found.settle()
    assert keys(found, [6]) == [[6]]


def test_a_small_scope_is_there_at_once(two_rows):
    found = ScopeBlocks(lambda last: two_rows.scan_records(EVERYTHING, after_key=last))
    found.prepare(LARGE - 1)
    found.prepare(LARGE - 1)
    assert keys(found, [5]) == [[5, 6]]


def test_a_scope_that_cannot_be_read_whole_is_read_row_by_row():
    def scan(_):
        raise StoreError("the disk is gone")

    found = ScopeBlocks(scan)
    found.prepare(LARGE)
    found.prepare(LARGE)
    found.settle()
    assert keys(found, [5]) == []


def test_more_than_a_hundred_newer_keys_are_loaded_as_one_more_block(blocks, two_rows):
    two_rows.append([contract_row(key) for key in range(7, 108)])
    assert keys(blocks, range(7, 107)) == [[5, 6]]
    assert keys(blocks, range(7, 108)) == [[5, 6], list(range(7, 108))]


def test_older_keys_that_are_gone_load_nothing(blocks, two_rows):
    two_rows.append([contract_row(7)])
    assert keys(blocks, [*range(-200, 5), 7]) == [[5, 6]]


# Memories of a scope are read from memory, whichever way they came there.


@pytest.fixture
def many_rows():
    return counting_store(*range(1, 301))


def records_of(many_rows, scope=EVERYTHING) -> ScopeRecords:
    return ScopeRecords(many_rows, scope, RecordCache(many_rows), rows=LARGE)


def test_after_its_second_read_a_scope_asks_nothing_of_the_store(many_rows):
    records = records_of(many_rows)
    assert records.fetch([2, 1]) == {1: contract_record(1), 2: contract_record(2)}
    assert (records.nbytes, many_rows.read) == (0, [[2, 1]])
    assert records.fetch([3, 1]) == {1: contract_record(1), 3: contract_record(3)}
    records.settle()
    asked = len(many_rows.read)
    assert records.fetch([4, 5]) == {4: contract_record(4), 5: contract_record(5)}
    assert len(many_rows.read) == asked


def test_a_few_later_memories_are_read_one_by_one_and_many_together(many_rows):
    records = records_of(many_rows)
    records.fetch([1])
    records.fetch([1])
    records.settle()
    many_rows.append([contract_row(400)])
    assert records.fetch([1, 400])[400] == contract_record(400)
    assert many_rows.read == [[1], [400]]
    many_rows.append([contract_row(key) for key in range(401, 600)])
    assert len(records.fetch(range(401, 600))) == 199
    assert many_rows.read == [[1], [400]]


def test_what_is_gone_is_left_out(many_rows):
    many_rows.delete([2])
    records = records_of(many_rows)
    records.fetch([1])
    assert list(records.fetch([1, 2, 3])) == [1, 3]


def test_nothing_of_another_scope_is_loaded(many_rows):
    many_rows.append([contract_row(700, owned_record(700, "alice"))])
    records = records_of(many_rows, Comparison(Field("user"), "eq", "alice"))
    records.fetch([700])
    records.fetch([700])
    records.settle()
    assert records.nbytes == 8
