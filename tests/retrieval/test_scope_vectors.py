"""Vectors of a large scope: read from the store at first, later held in half precision."""

import numpy as np
import pytest

from ekphory.filters.tree import Comparison, Field
from ekphory.retrieval.dense import ScopeVectors
from ekphory.store.in_memory import InMemoryStore
from ekphory.testing.store_contract import CONTRACT_IDENTITY, contract_row, owned_record

ALICE = Comparison(Field("user"), "eq", "alice")
ROOM = 1_000_000


@pytest.fixture
def store():
    found = InMemoryStore(CONTRACT_IDENTITY)
    found.append(
        [
            contract_row(1, owned_record(1, "alice")),
            contract_row(2, owned_record(2, "bob")),
            contract_row(3, owned_record(3, "alice"), windows=2),
        ]
    )
    return found


def held(store, *, room=ROOM):
    vectors = ScopeVectors(store, ALICE, room=room)
    for _ in range(2):
        vectors.prepare(3, 32)
    return vectors


def test_the_first_search_waits_for_nothing_and_the_second_loads(store):
    vectors = ScopeVectors(store, ALICE, room=ROOM)
    vectors.prepare(3, 32)
    assert not vectors.resident
    vectors.prepare(3, 32)
    assert vectors.resident
    assert vectors.nbytes == 3 * (32 * 2 + 8)


def test_what_has_no_room_stays_on_disk(store):
    assert not held(store, room=3 * 32 * 2 - 1).resident


@pytest.mark.parametrize("room", [ROOM, 0])
def test_the_windows_of_a_memory_come_in_order_whether_held_or_not(store, room):
    found = held(store, room=room).read(np.array([3, 1]))
    by_key = {key: found.vectors[found.keys == key] for key in (1, 3)}
    assert np.allclose(by_key[1], store.vectors_of([1]).vectors, atol=1e-3)
    assert np.allclose(by_key[3], store.vectors_of([3]).vectors, atol=1e-3)


def test_only_the_scope_is_held(store):
    assert held(store).nbytes == 3 * (32 * 2 + 8)


def test_what_is_written_after_the_load_is_read_from_the_store(store):
    vectors = held(store)
    store.append([contract_row(4, owned_record(4, "alice"))])
    assert vectors.read(np.array([4, 1])).keys.tolist() == [1, 4]


def test_much_that_was_written_after_the_load_is_loaded_as_well(store):
    vectors = held(store)
    store.append([contract_row(key, owned_record(key, "alice")) for key in range(4, 105)])
    vectors.read(np.arange(4, 105))
    assert vectors.nbytes == (3 + 101) * (32 * 2 + 8)
