"""The dense arm scores a memory by its best window."""

from dataclasses import replace

import numpy as np
import pytest

from ekphory.filters.tree import And
from ekphory.models.embedder import EmbedderIdentity
from ekphory.models.late_bound import LateBoundParts
from ekphory.retrieval import dense
from ekphory.retrieval.dense import (
    IndexedVectors,
    LateBoundRows,
    LateBoundWindows,
    ResidentVectors,
    ScopeVectors,
    Wanted,
    length_discounts,
)
from ekphory.store.in_memory import InMemoryStore
from ekphory.store.protocol import StoreIdentity
from ekphory.testing.store_contract import contract_row

WINDOWS = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
EAST = np.array([1, 0], np.float32)


def documents(number):
    return length_discounts(np.zeros(number, bool))


def scored(arm, *also, visible):
    search = arm.begin(EAST, Wanted(nearest=3, visible=np.array(visible, bool), now=0))
    return search.scores(np.array(also, np.int64))


def test_resident_vectors_score_every_row():
    arm = ResidentVectors((WINDOWS,), np.array([0, 1, 2], np.int32), documents(3))
    rows, scores = scored(arm, visible=[1, 0, 1])
    assert rows.tolist() == [0, 1, 2]
    assert scores.tolist() == pytest.approx([1.0, 0.0, 0.6])


def test_a_row_of_two_windows_counts_by_its_best_less_five_for_the_later_and_two_for_their_number():
    arm = ResidentVectors((WINDOWS,), np.array([0, 1, 1], np.int32), documents(2))
    assert scored(arm, visible=[1, 1])[1].tolist() == pytest.approx([1.0, 0.529206], abs=1e-5)


def test_a_turn_loses_ten_for_the_number_of_its_windows_where_a_document_loses_three():
    arm = ResidentVectors(
        (WINDOWS,), np.array([0, 1, 1], np.int32), length_discounts(np.ones(2, bool))
    )
    assert scored(arm, visible=[1, 1])[1].tolist() == pytest.approx([1.0, 0.480685], abs=1e-5)


def indexed(*, keys, found=()):
    """An arm whose index gives the keys `found`; keys 10 and 30 have one window, 20 has two."""
    store = InMemoryStore(StoreIdentity(1, "1", EmbedderIdentity("plane", "1", 2)))
    windows = {10: WINDOWS[:1], 20: WINDOWS[1:], 30: np.array([[0.1, 0]], np.float32)}
    store.append([replace(contract_row(key), vectors=each) for key, each in windows.items()])
    vectors = ScopeVectors(store, And(()), room=10_000)
    return IndexedVectors(
        np.array(keys, np.int64),
        lambda *_: np.array(found, np.int64),
        vectors,
        documents(len(keys)),
    )


def test_a_few_visible_rows_are_scored_without_the_index():
    arm = indexed(keys=[5, 10, 20])
    rows, scores = scored(arm, visible=[0, 1, 1])
    assert rows.tolist() == [1, 2]
    assert scores.tolist() == pytest.approx([1.0, 0.529206], abs=1e-5)


def test_both_arms_bind_age_and_type_alike():
    parts = LateBoundParts(np.zeros((10, 2), np.float32), np.zeros((4, 2), np.float32))
    parts.age[1] = [0, -1]  # from one to three days
    two_days = 2 * 86_400_000_000
    bound = LateBoundRows(parts, np.array([-two_days, 0]), np.array([3, 3]))
    content, owners = np.array([[3, 5], [0, 1], [0.6, 0.8]], np.float32), np.array([0, 1, 1])
    windows = LateBoundWindows.of(bound, owners, content)
    resident = ResidentVectors((content,), owners.astype(np.int32), documents(2), windows)

    found = replace(indexed(keys=[10, 20]), bound=bound)

    # z of the first is (3, 4); the second, of today, stays as it is
    assert scored(resident, visible=[1, 1])[1].tolist() == pytest.approx([0.6, 0.529206], abs=1e-5)
    assert scored(found, visible=[1, 1])[1].tolist() == pytest.approx([2**-0.5, 0.529206], abs=1e-5)
    assert resident.first_vectors(np.array([0]), now=0)[0] == pytest.approx([0.6, 0.8])


def test_what_is_asked_for_besides_is_scored_too():
    arm = indexed(keys=[10, 20])
    rows, scores = scored(arm, 1, visible=[1, 0])
    assert rows.tolist() == [0, 1]
    assert scores.tolist() == pytest.approx([1.0, 0.529206], abs=1e-5)


class TestManyVisibleRows:
    @pytest.fixture(autouse=True)
    def _none_is_few(self, monkeypatch):
        monkeypatch.setattr(dense, "FEW_VISIBLE", 0)

    def test_the_rows_that_the_index_found_are_scored_exactly_by_their_best_window(self):
        arm = indexed(keys=[10, 20, 30], found=[20, 10, 20])
        rows, scores = scored(arm, visible=[1, 1, 1])
        assert rows.tolist() == [0, 1]
        assert scores.tolist() == pytest.approx([1.0, 0.529206], abs=1e-5)

    def test_what_is_not_in_view_is_left_out(self):
        arm = indexed(keys=[10], found=[99, 10])
        assert scored(arm, visible=[1])[0].tolist() == [0]

    def test_other_rows_that_are_asked_for_are_scored_exactly(self):
        arm = indexed(keys=[10, 20, 30], found=[30])
        rows, scores = scored(arm, 1, 0, visible=[1, 1, 1])
        assert rows.tolist() == [0, 1, 2]
        assert scores.tolist() == pytest.approx([1.0, 0.529206, 0.1], abs=1e-5)

    def test_a_row_that_is_found_and_asked_for_comes_once(self):
        arm = indexed(keys=[10, 20], found=[10])
        assert scored(arm, 0, visible=[1, 1])[0].tolist() == [0]


def test_the_first_window_of_a_row_is_found_in_whichever_block_it_lies():
    arm = ResidentVectors((WINDOWS[:1], WINDOWS[1:]), np.array([0, 0, 1], np.int32), documents(2))
    assert arm.first_vectors(np.array([1, 0]), now=0).tolist() == [WINDOWS[2].tolist(), [1.0, 0.0]]
    assert arm.first_vectors(np.array([], np.int64), now=0).shape == (0, 2)


def test_the_first_window_of_a_row_is_read_from_the_store():
    arm = indexed(keys=[10, 20])
    assert arm.first_vectors(np.array([1, 0]), now=0).tolist() == [[0.0, 1.0], [1.0, 0.0]]
