"""A snapshot that was kept up to date equals one that is read anew."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ekphory.filters.tree import And, Comparison, Field
from ekphory.retrieval.dense import Wanted
from ekphory.retrieval.snapshot import Snapshots
from ekphory.store.in_memory import InMemoryStore
from ekphory.store.protocol import KEYS_A_COMMIT, ScopeColumns, first_key
from ekphory.testing.store_contract import CONTRACT_IDENTITY, contract_record, contract_row

EVERYTHING = And(())
ALICE = Comparison(Field("user"), "eq", "alice")
QUERY = contract_row(2).terms

steps = st.lists(
    st.tuples(
        st.sampled_from(["append", "long", "delete", "supersede", "look"]), st.integers(0, 99)
    ),
    max_size=14,
)


def owned(number, user="alice"):
    return replace(contract_record(number), user=user)


def row(key, record, *, windows=1):
    """A row of one of two sessions, or of none."""
    return replace(contract_row(key, record, windows=windows), thread=key // KEYS_A_COMMIT % 3)


def take(step, choice, store, snapshots):
    """Do one step; a choice picks the owner of what is written and what is changed."""
    user = "alice" if choice % 3 else "bob"
    key = first_key(after=store.version())
    present = [key for key in store.keys(EVERYTHING).tolist() if store.fetch([key])[key]]
    current = store.scan(EVERYTHING).key.tolist()
    if step == "append":
        store.append([row(key + n, owned(key + n, user)) for n in range(1 + choice % 3)])
    elif step == "long":
        store.append([row(key, owned(key, user), windows=3)])
    elif step == "delete" and present:
        store.delete([present[choice % len(present)]])
    elif step == "supersede" and current:
        old = current[choice % len(current)]
        record = store.fetch([old])[old]
        history = replace(record, id=f"old {key}", superseded_by=record.id)
        store.supersede(old, history, row(key, replace(record, text=f"memory {choice}")))
    elif step == "look":
        snapshots.of(ALICE)


def assert_same(held, fresh):
    for name in ScopeColumns.__slots__:
        assert getattr(held.columns, name).tolist() == getattr(fresh.columns, name).tolist()
    assert held.lexical.scores(QUERY)[0].tolist() == fresh.lexical.scores(QUERY)[0].tolist()
    assert held.neighbours.previous.tolist() == fresh.neighbours.previous.tolist()
    assert held.neighbours.following.tolist() == fresh.neighbours.following.tolist()
    direction = np.linspace(0, 1, 32).astype(np.float32)
    every = np.ones(len(held), bool)
    wanted = Wanted(nearest=99, visible=every, now=0)
    nobody = np.array([], np.int64)
    found = [one.dense.begin(direction, wanted).scores(nobody)[1].tolist() for one in (held, fresh)]
    assert found[0] == found[1]


@settings(deadline=None)
@given(steps=steps)
def test_a_renewed_snapshot_equals_a_fresh_one(steps):
    store = InMemoryStore(CONTRACT_IDENTITY)
    snapshots = Snapshots(store)
    for step, choice in steps:
        take(step, choice, store, snapshots)
    assert_same(snapshots.of(ALICE), Snapshots(store).of(ALICE))


def test_a_snapshot_holds_the_current_memories_of_its_scope_alone():
    store = InMemoryStore(CONTRACT_IDENTITY)
    store.append([contract_row(1, owned(1)), contract_row(2, owned(2, "bob"))])
    assert Snapshots(store).of(ALICE).columns.key.tolist() == [1]


def test_nothing_is_read_again_while_nothing_was_written():
    store = InMemoryStore(CONTRACT_IDENTITY)
    store.append([contract_row(1, owned(1))])
    snapshots = Snapshots(store)
    assert snapshots.of(ALICE) is snapshots.of(ALICE)


def test_a_snapshot_in_use_does_not_change_when_the_store_moves_on():
    store = InMemoryStore(CONTRACT_IDENTITY)
    store.append([contract_row(1, owned(1))])
    snapshots = Snapshots(store)
    earlier = snapshots.of(ALICE)
    store.append([contract_row(2, owned(2))])
    assert (len(earlier), len(snapshots.of(ALICE))) == (1, 2)


def test_expired_rows_are_told_apart_by_the_moment_asked_for():
    ends = contract_record(5).at
    store = InMemoryStore(CONTRACT_IDENTITY)
    store.append([contract_row(1), contract_row(2, replace(contract_record(2), expires_at=ends))])
    snapshot = Snapshots(store).of(EVERYTHING)
    moment = int(ends.timestamp() * 1_000_000)
    assert snapshot.alive(moment - 1).tolist() == [True, True]
    assert snapshot.alive(moment).tolist() == [True, False]
