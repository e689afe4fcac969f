"""LanceDB and the reference store give the same rows for every condition and after every write."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ekphory.filters.tree import And
from ekphory.store.in_memory import InMemoryStore
from ekphory.store.lance import LanceStore
from ekphory.testing.store_contract import CONTRACT_IDENTITY

from .strategies import NAMES, filters, rows, scope_filters

EVERYTHING = And(())
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
    stores = (
        InMemoryStore(CONTRACT_IDENTITY),
        LanceStore.open(str(directory / str(next(store_numbers))), CONTRACT_IDENTITY),
    )
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
