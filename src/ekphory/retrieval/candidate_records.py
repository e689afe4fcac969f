"""The whole memories behind candidates."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ekphory.retrieval.state import Candidates, IntArray, SearchState
from ekphory.types import MemoryRecord


def read_candidates(
    state: SearchState, *, most: int | None = None
) -> tuple[Candidates, list[MemoryRecord]]:
    """Read the memories of the first candidates.

    Args:
        state: Where the candidates are.
        most: How many to read; None reads all.

    Returns:
        All candidates but those that were asked for and are gone, and the records of the first.
    """
    candidates = state.candidates
    head = candidates.rows[:most]
    keys = state.snapshot.columns.key[head].tolist()
    found = state.resources.records(keys)
    there = np.array([key in found for key in keys], bool)
    kept = np.concatenate([there, np.ones(len(candidates) - len(head), bool)])
    remaining = candidates if kept.all() else candidates.take(kept)
    return remaining, [found[key] for key in keys if key in found]


def places_of(kept: Iterable[int], *, read: int, total: int) -> IntArray:
    """Give the places of what is kept of those that were read, and of all after them."""
    return np.array([*kept, *range(read, total)], np.int64)
