"""Previous and next memory of the same session, and what their scores lend to a memory.

A turn is understood through its neighbours ("Where did you go?" — "To Lisbon."), so a share of the
neighbours' BM25 is added to a memory's own. Taking it from the neighbour's score at query time
equals indexing the neighbour's text again as fields of this memory, and nothing is stored twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ekphory.store.store import NO_THREAD

FIRST_NEIGHBOUR_SHARE = 0.3
SECOND_NEIGHBOUR_SHARE = 0.1

LARGEST_SHARE = 1 + 2 * (FIRST_NEIGHBOUR_SHARE + SECOND_NEIGHBOUR_SHARE)
"""A memory's score with its neighbours' is at most so many times the best score among them."""

IntArray = NDArray[np.int64]
ScoreArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Row of the previous and of the next memory by row, -1 where there is none."""

    previous: NDArray[np.int32]
    following: NDArray[np.int32]

    @classmethod
    def build(cls, thread: IntArray, sequence: IntArray, at: IntArray, key: IntArray) -> Neighbours:
        """Order each thread by sequence, then moment, then writing; shapes (rows,)."""
        previous = np.full(len(thread), -1, np.int32)
        following = np.full(len(thread), -1, np.int32)
        order = np.lexsort((key, at, sequence, thread))
        left, right = order[:-1], order[1:]
        adjacent = (thread[left] == thread[right]) & (thread[left] != NO_THREAD)
        previous[right[adjacent]] = left[adjacent]
        following[left[adjacent]] = right[adjacent]
        return cls(previous, following)

    def extended(
        self, thread: IntArray, sequence: IntArray, at: IntArray, key: IntArray
    ) -> Neighbours:
        """Order all rows, of which those after the present ones are new; shapes (rows,).

        Equals `build`, but orders only the threads that got a row.
        """
        touched = np.unique(thread[len(self.previous) :])
        rows = np.flatnonzero(np.isin(thread, touched[touched != NO_THREAD]))
        among = Neighbours.build(thread[rows], sequence[rows], at[rows], key[rows])
        return Neighbours(
            _replaced(self.previous, among.previous, rows, len(thread)),
            _replaced(self.following, among.following, rows, len(thread)),
        )

    def shares(self, scores: ScoreArray, rows: IntArray) -> ScoreArray:
        """Give these rows' scores with the shares of their neighbours', two to each side.

        Args:
            scores: Of every row, shape (rows of the scope,).
            rows: Whose shares are wanted, shape (n,).
        """
        shares = scores[rows]
        for step in (self.following, self.previous):
            first = _moved(step, rows)
            shares += np.float32(FIRST_NEIGHBOUR_SHARE) * _or_nothing(scores, first)
            second = _moved(step, first)
            shares += np.float32(SECOND_NEIGHBOUR_SHARE) * _or_nothing(scores, second)
        return shares

    def reached(self, rows: IntArray) -> IntArray:
        """Give these rows and all to which they lend a share, ascending and distinct."""
        marked = np.zeros(len(self.previous), bool)
        marked[rows] = True
        for step in (self.previous, self.following):
            lent = rows
            for _ in range(2):
                lent = _moved(step, lent)
                lent = lent[lent >= 0]
                marked[lent] = True
        return np.flatnonzero(marked)


def _replaced(
    step: NDArray[np.int32], among: NDArray[np.int32], rows: IntArray, count: int
) -> NDArray[np.int32]:
    """Lengthen a step to `count` rows; `among` is the new step of `rows`, numbered among them."""
    longer = np.full(count, -1, np.int32)
    longer[: len(step)] = step
    longer[rows] = np.where(among >= 0, rows[among], -1)
    return longer


def _moved(step: NDArray[np.int32], rows: IntArray) -> IntArray:
    """Where one step leads from each row, -1 where it ends."""
    if len(step) == 0:
        return rows
    return np.where(rows >= 0, step[rows], -1).astype(np.int64)


def _or_nothing(scores: ScoreArray, rows: IntArray) -> ScoreArray:
    return np.where(rows >= 0, scores[rows], np.float32(0)).astype(np.float32, copy=False)
