"""Who stands before and after whom, and what neighbours lend each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekphory.retrieval.snapshot import Neighbours


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
    three = [(5, 1, 0), (8, 1, 0), (5, 3, 0)]
    neighbours = Neighbours.build(*columns_of(three)).extended(*columns_of([*three, (5, 2, 0)]))
    assert neighbours.previous.tolist() == [-1, -1, 3, 0]
    assert neighbours.following.tolist() == [3, -1, -1, 2]


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
