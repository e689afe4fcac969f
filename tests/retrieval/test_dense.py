"""The dense arm scores a memory by its best window."""

import numpy as np
import pytest

from recollect.retrieval.dense import IndexedVectors, ResidentVectors
from recollect.store.store import KeyedScores, KeyedVectors

WINDOWS = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
EAST = np.array([1, 0], np.float32)


def test_resident_vectors_score_every_row():
    arm = ResidentVectors(WINDOWS, np.array([0, 1, 2], np.int32), 3)
    rows, scores = arm.nearest(EAST, limit=1)
    assert rows.tolist() == [0, 1, 2]
    assert scores.tolist() == pytest.approx([1.0, 0.0, 0.6])


def test_a_row_with_several_windows_counts_by_its_best():
    arm = ResidentVectors(WINDOWS, np.array([0, 1, 1], np.int32), 2)
    assert arm.nearest(EAST, limit=9)[1].tolist() == pytest.approx([1.0, 0.6])


def test_resident_vectors_score_chosen_rows_in_the_asked_order():
    arm = ResidentVectors(WINDOWS, np.array([0, 1, 2], np.int32), 3)
    assert arm.scores_of(EAST, np.array([2, 0])).tolist() == pytest.approx([0.6, 1.0])


def indexed(*, keys, found):
    scores = np.array([score for _, score in found], np.float32)
    held = KeyedScores(np.array([key for key, _ in found], np.int64), scores)
    vectors = KeyedVectors(np.array([10, 20, 20], np.int64), WINDOWS)
    return IndexedVectors(np.array(keys, np.int64), lambda *_: held, lambda _: vectors)


def test_indexed_vectors_give_the_rows_that_the_index_found():
    arm = indexed(keys=[10, 20, 30], found=[(20, 0.9), (10, 0.4), (20, 0.2)])
    rows, scores = arm.nearest(EAST, limit=3)
    assert rows.tolist() == [0, 1]
    assert scores.tolist() == pytest.approx([0.4, 0.9])


def test_indexed_vectors_leave_out_what_is_not_in_view():
    rows, _ = indexed(keys=[10], found=[(99, 0.9), (10, 0.4)]).nearest(EAST, limit=3)
    assert rows.tolist() == [0]


def test_indexed_vectors_rescore_chosen_rows_exactly():
    arm = indexed(keys=[10, 20], found=[])
    assert arm.scores_of(EAST, np.array([1, 0])).tolist() == pytest.approx([0.6, 1.0])
