"""Blocks of a scope: none at the first use, one from the second on, another when much is new."""

import numpy as np
import pytest

from ekphory.filters.tree import And
from ekphory.store.in_memory import InMemoryStore
from ekphory.store.lance_snapshot import ScopeBlocks
from ekphory.testing.store_contract import CONTRACT_IDENTITY, contract_row


@pytest.fixture
def store():
    store = InMemoryStore(CONTRACT_IDENTITY)
    store.append([contract_row(key) for key in (5, 6)])
    return store


@pytest.fixture
def blocks(store):
    """Blocks after the second use."""
    found = records_of(store)
    found.prepare()
    found.prepare()
    return found


def records_of(store):
    return ScopeBlocks(lambda last: store.scan_records(And(()), after_key=last))


def keys(blocks, wanted):
    return [block.keys.tolist() for block in blocks.holding(np.array(wanted))]


def test_the_first_use_loads_nothing(store):
    blocks = records_of(store)
    blocks.prepare()
    assert keys(blocks, [5]) == []
    assert blocks.nbytes == 0


def test_the_second_use_loads_the_scope(blocks):
    assert keys(blocks, [5]) == [[5, 6]]
    assert blocks.nbytes == 16


def test_later_uses_load_nothing(blocks, store):
    store.append([contract_row(7)])
    blocks.prepare()
    assert keys(blocks, [5]) == [[5, 6]]


def test_a_hundred_newer_keys_are_not_worth_a_load(blocks, store):
    store.append([contract_row(key) for key in range(7, 107)])
    assert keys(blocks, range(7, 107)) == [[5, 6]]


def test_more_newer_keys_are_loaded_as_one_more_block(blocks, store):
    store.append([contract_row(key) for key in range(7, 108)])
    assert keys(blocks, range(7, 108)) == [[5, 6], list(range(7, 108))]


def test_older_keys_that_are_gone_load_nothing(blocks, store):
    store.append([contract_row(7)])
    assert keys(blocks, [*range(-200, 5), 7]) == [[5, 6]]


def test_an_empty_scope_gives_no_blocks():
    blocks = records_of(InMemoryStore(CONTRACT_IDENTITY))
    for _ in range(3):
        blocks.prepare()
    assert blocks.holding(np.array([1])) == ()
