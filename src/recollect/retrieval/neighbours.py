"""Previous and next memory of the same session, and what their scores lend to a memory.

A turn is understood through its neighbours ("Where did you go?" — "To Lisbon."), so a share of the
neighbours' BM25 is added to a memory's own. Taking it from the neighbour's score at query time
equals indexing the neighbour's text again as fields of this memory, and nothing is stored twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FIRST_NEIGHBOUR_SHARE = 0.3
SECOND_NEIGHBOUR_SHARE = 0.1

NO_THREAD = 0
"""Thread of a memory that has neither a session nor a sequence: it has no neighbours."""

IntArray = NDArray[np.int64]


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

    def spread(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Add to each row the shares of its neighbours' scores, two to each side."""
        spread = scores.copy()
        givers = np.flatnonzero(scores != 0)  # on numbers it takes five times as long
        for step in (self.previous, self.following):
            reached, given = _step(step, givers, scores[givers])
            spread[reached] += np.float32(FIRST_NEIGHBOUR_SHARE) * given
            further, given = _step(step, reached, given)
            spread[further] += np.float32(SECOND_NEIGHBOUR_SHARE) * given
        return spread


def _step(
    step: NDArray[np.int32], rows: NDArray[np.integer], given: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Where one step leads from `rows`, each place once, with what is carried there."""
    reached = step[rows]
    exists = reached >= 0
    return reached[exists], given[exists]
