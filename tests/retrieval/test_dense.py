"""The dense arm scores a memory by its best window."""

import numpy as np
import pytest

from recollect.retrieval import dense
from recollect.retrieval.dense import IndexedVectors, ResidentVectors, Wanted
from recollect.store.store import KeyedScores, KeyedVectors

WINDOWS = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
EAST = np.array([1, 0], np.float32)


def scored(arm, *also, visible):
    search = arm.begin(EAST, Wanted(nearest=3, visible=np.array(visible, bool)))
    return search.scores(np.array(also, np.int64))


def test_resident_vectors_score_every_row():
    arm = ResidentVectors((WINDOWS,), np.array([0, 1, 2], np.int32), 3)
    rows, scores = scored(arm, visible=[1, 0, 1])
    assert rows.tolist() == [0, 1, 2]
    assert scores.tolist() == pytest.approx([1.0, 0.0, 0.6])


def test_a_row_with_several_windows_counts_by_its_best_the_later_ones_a_little_less():
    arm = ResidentVectors((WINDOWS,), np.array([0, 1, 1], np.int32), 2)
    assert scored(arm, visible=[1, 1])[1].tolist() == pytest.approx([1.0, 0.55])


def indexed(*, keys, found=()):
    """An arm over a store that finds these keys, and holds the windows of keys 10, 20 and 20."""
    scores = np.array([score for _, score in found], np.float32)
    held = KeyedScores(np.array([key for key, _ in found], np.int64), scores)
    owners = np.array([10, 20, 20], np.int64)

    def read(keys):
        present = np.isin(owners, keys)
        return KeyedVectors(owners[present], WINDOWS[present])

    return IndexedVectors(np.array(keys, np.int64), lambda *_: held, read)


def test_indexed_vectors_read_a_few_visible_rows_and_score_them_exactly():
    arm = indexed(keys=[5, 10, 20])
    rows, scores = scored(arm, visible=[0, 1, 1])
    assert rows.tolist() == [1, 2]
    assert scores.tolist() == pytest.approx([1.0, 0.6])


def test_what_is_wanted_besides_is_read_too():
    arm = indexed(keys=[10, 20])
    rows, scores = scored(arm, 1, visible=[1, 0])
    assert rows.tolist() == [0, 1]
    assert scores.tolist() == pytest.approx([1.0, 0.6])


class TestManyVisibleRows:
    @pytest.fixture(autouse=True)
    def _none_is_few(self, monkeypatch):
        monkeypatch.setattr(dense, "FEW_VISIBLE", 0)

    def test_the_rows_that_the_index_found_come_by_their_best_window(self):
        arm = indexed(keys=[10, 20, 30], found=[(20, 0.9), (10, 0.4), (20, 0.2)])
        rows, scores = scored(arm, visible=[1, 1, 1])
        assert rows.tolist() == [0, 1]
        assert scores.tolist() == pytest.approx([0.4, 0.9])

    def test_what_is_not_in_view_is_left_out(self):
        arm = indexed(keys=[10], found=[(99, 0.9), (10, 0.4)])
        assert scored(arm, visible=[1])[0].tolist() == [0]

    def test_other_wanted_rows_are_scored_exactly(self):
        arm = indexed(keys=[10, 20, 30], found=[(30, 0.1)])
        rows, scores = scored(arm, 1, 0, visible=[1, 1, 1])
        assert rows.tolist() == [0, 1, 2]
        assert scores.tolist() == pytest.approx([1.0, 0.6, 0.1])

    def test_a_row_that_is_found_and_wanted_comes_once(self):
        arm = indexed(keys=[10, 20], found=[(10, 1.0)])
        assert scored(arm, 0, visible=[1, 1])[0].tolist() == [0]


def test_the_first_window_of_a_row_is_found_in_whichever_block_it_lies():
    arm = ResidentVectors((WINDOWS[:1], WINDOWS[1:]), np.array([0, 0, 1], np.int32), 2)
    assert arm.first_vectors(np.array([1, 0])).tolist() == [WINDOWS[2].tolist(), [1.0, 0.0]]
    assert arm.first_vectors(np.array([], np.int64)).shape == (0, 2)


def test_the_first_window_of_a_row_is_read_from_the_store():
    arm = indexed(keys=[10, 20])
    assert arm.first_vectors(np.array([1, 0])).tolist() == [[0.0, 1.0], [1.0, 0.0]]
