"""Who stands before and after whom, and what neighbours lend each other."""

import numpy as np
import pytest

from recollect.retrieval.neighbours import Neighbours


def built(*, thread, sequence=None, at=None):
    rows = len(thread)
    return Neighbours.build(
        np.array(thread, np.int64),
        np.array(sequence or [0] * rows, np.int64),
        np.array(at or [0] * rows, np.int64),
        np.arange(1, rows + 1, dtype=np.int64),
    )


def test_the_memories_of_one_session_are_neighbours_in_their_order():
    neighbours = built(thread=[5, 5, 5])
    assert neighbours.previous.tolist() == [-1, 0, 1]
    assert neighbours.following.tolist() == [1, 2, -1]


def test_sessions_that_interleave_are_kept_apart():
    neighbours = built(thread=[5, 8, 5, 8])
    assert neighbours.previous.tolist() == [-1, -1, 0, 1]


def test_what_belongs_to_no_session_has_no_neighbours():
    neighbours = built(thread=[0, 0])
    assert neighbours.previous.tolist() == [-1, -1]
    assert neighbours.following.tolist() == [-1, -1]


def test_sequence_orders_before_the_moment_and_the_moment_before_the_writing():
    neighbours = built(thread=[5, 5, 5, 5], sequence=[2, 1, 1, 1], at=[0, 9, 3, 3])
    # In order: rows 2, 3 (same moment, written later), 1, 0.
    assert neighbours.previous.tolist() == [1, 3, -1, 2]


def test_a_score_lends_three_tenths_one_step_and_a_tenth_two_steps_away():
    neighbours = built(thread=[5, 5, 5, 5, 5, 5])
    scores = np.array([0, 0, 0, 10, 0, 0], np.float32)
    assert neighbours.shares(scores, np.arange(6)).tolist() == pytest.approx([0, 1, 3, 10, 3, 1])


def test_what_several_neighbours_lend_adds_up():
    neighbours = built(thread=[5, 5, 5])
    scores = np.array([10, 20, 0], np.float32)
    assert neighbours.shares(scores, np.array([2, 0])).tolist() == pytest.approx([6 + 1, 10 + 6])


def test_nothing_is_lent_between_sessions():
    neighbours = built(thread=[5, 8])
    assert neighbours.shares(np.array([10, 0], np.float32), np.array([0, 1])).tolist() == [10, 0]


def test_the_rows_that_a_score_reaches_are_two_steps_to_each_side():
    neighbours = built(thread=[5, 5, 5, 5, 5, 5, 8])
    assert neighbours.reached(np.array([3])).tolist() == [1, 2, 3, 4, 5]
    assert neighbours.reached(np.array([6])).tolist() == [6]


def test_scores_are_left_as_they_were():
    scores = np.array([10, 0], np.float32)
    built(thread=[5, 5]).shares(scores, np.array([0, 1]))
    assert scores.tolist() == [10, 0]


def test_an_empty_scope_has_no_neighbours():
    nobody = np.array([], np.int64)
    assert built(thread=[]).shares(np.array([], np.float32), nobody).tolist() == []
