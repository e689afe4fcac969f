"""The store on LanceDB and the reference keep the contract, and agree."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from threading import Barrier

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.in_memory import InMemoryStore
from tests.store.store_contract import (
    CONTRACT_IDENTITY,
    DurableStoreContract,
    StoreContract,
    contract_row,
    history_record,
    successor_record,
)

from ekphory.filters.tree import And
from ekphory.store.lance import LanceStore
from ekphory.store.lance_presence import KnownNames

from .strategies import NAMES, filters, rows, scope_filters

EVERYTHING = And(())


def open_lance(directory) -> LanceStore:
    return LanceStore.open(str(directory / "store"), CONTRACT_IDENTITY)


class TestLanceStore(DurableStoreContract):
    @pytest.fixture
    def store(self, reopen):
        return reopen()

    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: open_lance(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(8))
def test_stores_that_are_made_at_the_same_moment_are_one_and_lose_nothing(tmp_path, attempt):
    start = Barrier(4)

    def make_and_write(key):
        start.wait()
        open_lance(tmp_path).append([contract_row(key)])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(make_and_write, range(1, 5)))
    assert open_lance(tmp_path).keys(EVERYTHING).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("rewrite", ["purge", "repair"])
def test_what_another_process_wrote_meanwhile_survives_a_rewrite(tmp_path, rewrite):
    store, other = open_lance(tmp_path), open_lance(tmp_path)
    store.append([contract_row(1), contract_row(2)])
    store.delete([2])
    store.version()
    other.append([contract_row(3)])
    getattr(store, rewrite)()
    assert open_lance(tmp_path).keys(EVERYTHING).tolist() == [1, 3]


def test_what_another_process_wrote_meanwhile_survives_another_models_vectors(tmp_path):
    store, other = open_lance(tmp_path), open_lance(tmp_path)
    store.append([contract_row(1)])
    embedder = replace(CONTRACT_IDENTITY.embedder, name="another")
    store.keep_vectors(embedder, {1: np.ones((1, embedder.dimension), np.float32)})
    store.version()
    other.append([contract_row(2)])
    store.switch_vectors(embedder)
    assert open_lance(tmp_path).keys(EVERYTHING).tolist() == [1, 2]


class TestInMemoryStore(StoreContract):
    @pytest.fixture
    def store(self):
        return InMemoryStore(CONTRACT_IDENTITY)


# Both give the same rows for every condition and after every write.

thorough = settings(
    deadline=None,
    max_examples=9,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
store_numbers = count()


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("agreement")


def both_stores(directory, memories):
    lance = open_lance(directory / str(next(store_numbers)))
    stores = (InMemoryStore(CONTRACT_IDENTITY), lance)
    for store in stores:
        store.append(memories)
    return stores


def plain(columns):
    """Arrays as lists, so that they can be compared."""
    names = type(columns).__slots__
    return {name: getattr(columns, name).tolist() for name in names}


def assert_same_orders(reference, store):
    for order in ("newest", "oldest", "written"):
        assert store.select(EVERYTHING, order=order) == reference.select(EVERYTHING, order=order)


def assert_same_rows(reference, store, where):
    assert store.select(where, order="written") == reference.select(where, order="written")
    page = {"order": "newest", "limit": 2, "offset": 1}
    assert store.select(where, **page) == reference.select(where, **page)
    assert store.keys(where).tolist() == reference.keys(where).tolist()
    assert store.count(where) == reference.count(where)
    assert plain(store.scan(where, after_key=1)) == plain(reference.scan(where, after_key=1))
    assert plain(store.scan(where)) == plain(reference.scan(where))


def assert_same_vectors(reference, store, where):
    found, expected = store.scan_vectors(where), reference.scan_vectors(where)
    assert found.keys.tolist() == expected.keys.tolist()
    assert sorted(zip(found.keys, found.vectors.argmax(axis=1), strict=True)) == sorted(
        zip(expected.keys, expected.vectors.argmax(axis=1), strict=True)
    )
    direction = np.linspace(1, 2, 32).astype(np.float32)
    nearest = [one.nearest(where, direction, limit=50) for one in (store, reference)]
    assert sorted(nearest[0].tolist()) == sorted(nearest[1].tolist())


@pytest.mark.slow
@thorough
@given(memories=rows(), conditions=st.lists(filters, min_size=2, max_size=5))
def test_both_stores_give_the_same_rows_for_every_condition(directory, memories, conditions):
    reference, store = both_stores(directory, memories)
    assert_same_orders(reference, store)
    for where in [EVERYTHING, *conditions]:
        assert_same_rows(reference, store, where)


@thorough
@given(memories=rows(), conditions=st.lists(scope_filters, min_size=2, max_size=4))
def test_both_stores_give_the_same_vectors_for_every_scope(directory, memories, conditions):
    reference, store = both_stores(directory, memories)
    for where in [EVERYTHING, *conditions]:
        assert_same_vectors(reference, store, where)


@thorough
@given(memories=rows(), where=filters)
def test_both_stores_tell_the_same_presence(directory, memories, where):
    reference, store = both_stores(directory, memories)
    found, expected = (one.present(where, NAMES[:3], ["f1"]) for one in (store, reference))
    assert sorted(found, key=lambda entry: entry.key) == expected


@pytest.mark.slow
@thorough
@given(memories=rows(), where=scope_filters, data=st.data())
def test_both_stores_agree_after_versions_and_deletions(directory, memories, where, data):
    reference, store = both_stores(directory, memories)
    old = data.draw(st.sampled_from(memories), label="superseded")
    gone = data.draw(st.sets(st.integers(1, len(memories) + 1)), label="deleted")
    history = replace(old.record, id="version", superseded_by="new")
    first_axis = np.eye(32, dtype=np.float32)[:1]
    successor = replace(memories[0], key=len(memories) + 1, vectors=first_axis)
    for one in (reference, store):
        one.supersede(old.key, history, successor)
        one.delete(sorted(gone))
    assert_same_orders(reference, store)
    for condition in (EVERYTHING, where):
        assert_same_rows(reference, store, condition)
        assert_same_vectors(reference, store, condition)


# What is stored is found however it came there, also once all names are known.


def find_ids(store: LanceStore, *ids: str) -> list[str]:
    store.version()
    return sorted(entry.id for entry in store.present(EVERYTHING, list(ids), []))


@pytest.fixture
def store(tmp_path):
    """A store that has been asked often enough to know all its names."""
    store = open_lance(tmp_path)
    store.append([contract_row(1), contract_row(2)])
    for _ in range(3):
        assert find_ids(store, "m1", "m9") == ["m1"]
    return store


def test_what_was_written_or_deleted_since_is_known(store):
    # What was written since is found and what was deleted is not.
    store.append([contract_row(3)])
    store.append([contract_row(4)])
    store.delete([1])
    assert find_ids(store, "m1", "m2", "m3", "m4", "m5") == ["m2", "m3", "m4"]
    store.purge()
    store.append([contract_row(8)])
    assert find_ids(store, "m1", "m2", "m8") == ["m2", "m8"]
    # A later version is found by the id and a fingerprint in history too.
    store.append([replace(contract_row(9), fingerprint="ab12")])
    store.supersede(9, history_record(9), contract_row(10, successor_record(9)))
    store.version()
    assert [entry.key for entry in store.present(EVERYTHING, ["m9"], [])] == [10]
    assert [entry.key for entry in store.present(EVERYTHING, [], ["ab12", "cd34"])] == [9]


def test_what_another_process_wrote_is_found(store, tmp_path):
    other = open_lance(tmp_path)
    other.append([contract_row(3)])
    store.append([contract_row(4)])
    other.append([contract_row(5)])
    assert find_ids(store, "m3", "m4", "m5", "m6") == ["m3", "m4", "m5"]


def test_only_noted_names_are_possible_in_the_order_asked() -> None:
    # Only noted names are possible in the order asked.
    known = KnownNames()
    assert known.possible(["a"]) == []
    known.note(["a", None, "b"])
    assert known.possible(["c", "d"]) == []
    assert known.possible(["b", "x", "a", "b"]) == ["b", "a", "b"]
    # Many names are all kept.
    names = [f"name {number}" for number in range(30_000)]
    known.note(names[:20_000])
    known.note(names[20_000:])
    assert known.possible(names) == names


@given(st.lists(st.text()), st.lists(st.text()))
def test_no_noted_name_is_ever_missed(noted: list[str], asked: list[str]) -> None:
    known = KnownNames()
    known.note(noted)
    assert set(noted) & set(asked) <= set(known.possible(asked))
