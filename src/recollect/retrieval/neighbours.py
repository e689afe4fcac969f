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
        # One slot more, always zero, is what the index -1 reads.
        padded = np.append(scores, np.float32(0))
        before, after = padded[self.previous], padded[self.following]
        second_before = np.append(before, np.float32(0))[self.previous]
        second_after = np.append(after, np.float32(0))[self.following]
        first = np.float32(FIRST_NEIGHBOUR_SHARE) * (before + after)
        second = np.float32(SECOND_NEIGHBOUR_SHARE) * (second_before + second_after)
        return np.asarray(scores + first + second, np.float32)
