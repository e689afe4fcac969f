"""Who stands before and after whom, and what neighbours lend each other."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.in_memory import InMemoryStore
from tests.store.store_contract import (
    CONTRACT_IDENTITY,
    contract_record,
    contract_row,
    history_record,
    owned_record,
    successor_record,
)

from ekphory.filters.tree import And, Comparison, Field
from ekphory.retrieval.dense import Wanted
from ekphory.retrieval.snapshot import LEAST_BYTES, Neighbours, Snapshots, snapshot_budget
from ekphory.store.protocol import KEYS_A_COMMIT, ScopeColumns, first_key


def built(*, thread, sequence=None, at=None):
    rows = len(thread)
    return Neighbours.build(
        np.array(thread, np.int64),
        np.array(sequence or [0] * rows, np.int64),
        np.array(at or [0] * rows, np.int64),
        np.arange(1, rows + 1, dtype=np.int64),
    )


rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2)), max_size=12)
"""Thread, sequence and moment of each row; thread 0 is none."""


def columns_of(rows):
    thread, sequence, at = np.array(rows, np.int64).reshape(-1, 3).T
    return thread, sequence, at, np.arange(len(rows), dtype=np.int64)


@settings(deadline=None)
@given(rows=rows, cuts=st.lists(st.integers(0, 12), max_size=3).map(sorted))
def test_an_order_extended_in_steps_equals_one_that_is_built_at_once(rows, cuts):
    extended = Neighbours.build(*columns_of([]))
    for cut in [*cuts, len(rows)]:
        extended = extended.extended(*columns_of(rows[: max(cut, len(extended.previous))]))
    built_at_once = Neighbours.build(*columns_of(rows))
    assert extended.previous.tolist() == built_at_once.previous.tolist()
    assert extended.following.tolist() == built_at_once.following.tolist()


def test_a_row_that_comes_late_is_put_between_its_neighbours():
    # A row that comes late is put between its neighbours.
    three = [(5, 1, 0), (8, 1, 0), (5, 3, 0)]
    neighbours = Neighbours.build(*columns_of(three)).extended(*columns_of([*three, (5, 2, 0)]))
    assert neighbours.previous.tolist() == [-1, -1, 3, 0]
    assert neighbours.following.tolist() == [3, -1, -1, 2]
    # The rows that a score reaches are two steps to each side.
    neighbours = built(thread=[5, 5, 5, 5, 5, 5, 8])
    assert neighbours.reached(np.array([3])).tolist() == [1, 2, 3, 4, 5]
    assert neighbours.reached(np.array([6])).tolist() == [6]


@pytest.mark.parametrize(
    ("given", "previous", "following"),
    [
        ({"thread": [5, 5, 5]}, [-1, 0, 1], [1, 2, -1]),
        ({"thread": [5, 8, 5, 8]}, [-1, -1, 0, 1], [2, 3, -1, -1]),
        ({"thread": [0, 0]}, [-1, -1], [-1, -1]),
        # By sequence, then by moment, then by writing: rows 2, 3, 1, 0.
        ({"thread": [5, 5, 5, 5], "sequence": [2, 1, 1, 1], "at": [0, 9, 3, 3]},
         [1, 3, -1, 2], [-1, 0, 3, 1]),
    ],
)  # fmt: skip
def test_the_memories_of_one_session_are_neighbours_in_their_order(given, previous, following):
    neighbours = built(**given)
    assert neighbours.previous.tolist() == previous
    assert neighbours.following.tolist() == following


@pytest.mark.parametrize(
    ("thread", "scores", "of", "shares"),
    [
        ([5, 5, 5, 5, 5, 5], [0, 0, 0, 10, 0, 0], range(6), [0, 1, 3, 10, 3, 1]),
        ([5, 5, 5], [10, 20, 0], [2, 0], [6 + 1, 10 + 6]),
        ([5, 8], [10, 0], [0, 1], [10, 0]),
        ([], [], [], []),
    ],
    ids=["of one", "of several neighbours", "of another session", "of nobody"],
)
def test_a_score_lends_three_tenths_one_step_and_a_tenth_two_steps_away(thread, scores, of, shares):
    given = np.array(scores, np.float32)
    found = built(thread=thread).shares(given, np.array(of, np.int64))
    assert found.tolist() == pytest.approx(shares)
    assert given.tolist() == scores


EVERYTHING = And(())
ALICE = Comparison(Field("user"), "eq", "alice")
QUERY = contract_row(2).terms

steps = st.lists(
    st.tuples(
        st.sampled_from(["append", "long", "delete", "supersede", "look"]), st.integers(0, 99)
    ),
    max_size=14,
)


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
        store.append([row(key + n, owned_record(key + n, user)) for n in range(1 + choice % 3)])
    elif step == "long":
        store.append([row(key, owned_record(key, user), windows=3)])
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
    found = [one.dense.begin(direction, wanted)(nobody)[1].tolist() for one in (held, fresh)]
    assert found[0] == found[1]


@settings(deadline=None)
@given(steps=steps)
def test_a_renewed_snapshot_equals_a_fresh_one(steps):
    store = InMemoryStore(CONTRACT_IDENTITY)
    snapshots = Snapshots(store)
    for step, choice in steps:
        take(step, choice, store, snapshots)
    assert_same(snapshots.of(ALICE), Snapshots(store).of(ALICE))


def store_of(*records):
    store = InMemoryStore(CONTRACT_IDENTITY)
    store.append([contract_row(key, record) for key, record in enumerate(records, start=1)])
    return store


def test_a_snapshot_holds_its_scope_alone_and_does_not_change_when_the_store_moves_on():
    store = store_of(owned_record(1, "alice"), owned_record(2, "bob"))
    snapshots = Snapshots(store)
    earlier = snapshots.of(ALICE)
    assert earlier.columns.key.tolist() == [1]
    assert snapshots.of(ALICE) is earlier
    store.append([contract_row(3, owned_record(3, "alice"))])
    assert (len(earlier), len(snapshots.of(ALICE))) == (1, 2)


class ChangedWhileRead(InMemoryStore):
    """Another process changes memory 1 and deletes memory 2 between a scan and its vectors."""

    def scan_vectors(self, where, *, after_key=0, precision=np.float32):
        if 2 in self.keys(EVERYTHING):
            self.supersede(1, history_record(1), contract_row(4, successor_record(1)))
            self.delete([2])
        return super().scan_vectors(where, after_key=after_key, precision=precision)


@pytest.mark.parametrize("is_renewed", [False, True])
def test_a_memory_that_another_process_changes_while_it_is_read_keeps_its_vector(is_renewed):
    store = ChangedWhileRead(CONTRACT_IDENTITY)
    snapshots = Snapshots(store)
    if is_renewed:
        snapshots.of(EVERYTHING)
    store.append([contract_row(key) for key in (1, 2, 3)])
    first = snapshots.of(EVERYTHING).dense.first_vectors(np.array([0, 1, 2]), now=0)
    expected = [contract_row(1).vectors[0], np.zeros(32), contract_row(3).vectors[0]]
    assert first.tolist() == [vector.tolist() for vector in expected]


class ChangedBeforeAScanAndAddedToAfterIt(InMemoryStore):
    """Another process changes memory 1 just before a renewal's scan and adds one just after it."""

    def scan(self, where, *, after_key=0):
        if after_key == 2:
            self.supersede(1, history_record(1), contract_row(3, successor_record(1)))
        found = super().scan(where, after_key=after_key)
        if after_key == 2:
            self.append([contract_row(4)])
        return found


def test_a_memory_that_others_change_while_others_add_is_there_once():
    store = ChangedBeforeAScanAndAddedToAfterIt(CONTRACT_IDENTITY)
    store.append([contract_row(key) for key in (1, 2)])
    snapshots = Snapshots(store)
    snapshots.of(EVERYTHING)
    store.delete([])  # The snapshot is not of the newest version any more.
    assert snapshots.of(EVERYTHING).columns.key.tolist() == [2, 3]
    assert snapshots.of(EVERYTHING).columns.key.tolist() == [2, 3, 4]


def test_which_rows_fulfil_a_condition_is_asked_once_until_the_store_moves_on():
    store = store_of(*(contract_record(number) for number in (1, 2, 3)))
    snapshots, asked = Snapshots(store), []

    def fulfil(value):
        condition = Comparison(Field("sequence"), "eq", value)
        keys = np.array([2] if value is True else [1], np.int64)
        found = snapshots.of(EVERYTHING).fulfil(condition, lambda: asked.append(value) or keys)
        return found.tolist()

    assert [fulfil(1), fulfil(1)] == [[True, False, False]] * 2
    assert fulfil(True) == [False, True, False], "1 and True are two conditions"
    assert asked == [1, True]
    store.append([contract_row(4)])
    assert (fulfil(1), asked) == ([True, False, False, False], [1, True, 1])


def test_expired_rows_are_told_apart_by_the_moment_asked_for():
    ends = contract_record(5).at
    store = store_of(contract_record(1), replace(contract_record(2), expires_at=ends))
    snapshot = Snapshots(store).of(EVERYTHING)
    moment = int(ends.timestamp() * 1_000_000)
    assert snapshot.alive(moment - 1).tolist() == [True, True]
    assert snapshot.alive(moment).tolist() == [True, False]


@pytest.mark.parametrize(("limit", "budget"), [(4 * 2**30, 2**29), (1_000_000, LEAST_BYTES)])
def test_a_container_with_a_limit_gives_an_eighth_of_it_or_the_least(tmp_path, limit, budget):
    (tmp_path / "memory.max").write_text(f"{limit}\n")
    assert snapshot_budget(limit_file=tmp_path / "memory.max") == budget


def test_no_limit_leaves_an_eighth_of_the_machine(tmp_path):
    limit = tmp_path / "memory.max"
    limit.write_text("max\n")
    assert snapshot_budget(limit_file=limit) >= LEAST_BYTES
    assert snapshot_budget(limit_file=tmp_path / "none") == snapshot_budget(limit_file=limit)
