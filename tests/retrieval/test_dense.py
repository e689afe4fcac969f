"""The dense arm scores a memory by its best window."""

import numpy as np
import pytest

from recollect.retrieval.dense import IndexedVectors, ResidentVectors
from recollect.store.store import KeyedScores, KeyedVectors

WINDOWS = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
EAST = np.array([1, 0], np.float32)


NOBODY = np.array([], np.int64)


def test_resident_vectors_score_every_row():
    arm = ResidentVectors(WINDOWS, np.array([0, 1, 2], np.int32), 3)
    rows, scores = arm.scores(EAST, nearest=1, also=NOBODY)
    assert rows.tolist() == [0, 1, 2]
    assert scores.tolist() == pytest.approx([1.0, 0.0, 0.6])


def test_a_row_with_several_windows_counts_by_its_best():
    arm = ResidentVectors(WINDOWS, np.array([0, 1, 1], np.int32), 2)
    assert arm.scores(EAST, nearest=9, also=NOBODY)[1].tolist() == pytest.approx([1.0, 0.6])


def indexed(*, keys, found):
    """An arm over a store that finds these keys, and holds the windows of keys 10, 20 and 20."""
    scores = np.array([score for _, score in found], np.float32)
    held = KeyedScores(np.array([key for key, _ in found], np.int64), scores)
    owners = np.array([10, 20, 20], np.int64)

    def read(wanted):
        present = np.isin(owners, wanted)
        return KeyedVectors(owners[present], WINDOWS[present])

    return IndexedVectors(np.array(keys, np.int64), lambda *_: held, read)


def test_indexed_vectors_give_the_rows_that_the_index_found_by_their_best_window():
    arm = indexed(keys=[10, 20, 30], found=[(20, 0.9), (10, 0.4), (20, 0.2)])
    rows, scores = arm.scores(EAST, nearest=3, also=NOBODY)
    assert rows.tolist() == [0, 1]
    assert scores.tolist() == pytest.approx([0.4, 0.9])


def test_indexed_vectors_leave_out_what_is_not_in_view():
    arm = indexed(keys=[10], found=[(99, 0.9), (10, 0.4)])
    assert arm.scores(EAST, nearest=3, also=NOBODY)[0].tolist() == [0]


def test_indexed_vectors_score_other_wanted_rows_exactly():
    arm = indexed(keys=[10, 20, 30], found=[(30, 0.1)])
    rows, scores = arm.scores(EAST, nearest=1, also=np.array([1, 0]))
    assert rows.tolist() == [0, 1, 2]
    assert scores.tolist() == pytest.approx([1.0, 0.6, 0.1])


def test_a_row_that_is_found_and_wanted_comes_once():
    arm = indexed(keys=[10, 20], found=[(10, 1.0)])
    assert arm.scores(EAST, nearest=1, also=np.array([0]))[0].tolist() == [0]
