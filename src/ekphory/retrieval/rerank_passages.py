"""What stage 12 gives a reranker: the question with its context, the memories with their turns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import numpy as np

from ekphory.models.rerank_documents import told_type
from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.moments import EPOCH
from ekphory.retrieval.candidate_records import read_candidates
from ekphory.retrieval.state import Candidates, IntArray, SearchRequest, SearchState
from ekphory.types import MemoryRecord


def asked(request: SearchRequest, text: str) -> RerankQuery:
    """Give the question in this wording, with the dialogue before it and its moment."""
    now = EPOCH + timedelta(microseconds=request.now)
    return RerankQuery(text, context=request.context, now=now)


def read_passages(
    state: SearchState, *, most: int | None = None
) -> tuple[Candidates, list[RerankPassage]]:
    """Read the first candidates together with the turns before and after them, in one take.

    Returns:
        As `read_candidates`, with passages in place of records.
    """
    head = state.candidates.rows[:most]
    wanted = np.unique(np.concatenate([head, *_neighbours(state, head)]))
    keys = state.snapshot.columns.key[wanted[wanted >= 0]].tolist()
    found = state.resources.records(keys)
    candidates, records = read_candidates(state, most=most)
    before, after = _neighbours(state, candidates.rows[: len(records)])
    passages = [
        RerankPassage(
            record.indexed_text,
            before=_text(state, found, int(before[place])),
            after=_text(state, found, int(after[place])),
            at=record.at,
            type=told_type(record),
        )
        for place, record in enumerate(records)
    ]
    return candidates, passages


def _neighbours(state: SearchState, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Rows of the turns before and after that have not expired; -1 where there is none."""
    neighbours, alive = state.snapshot.neighbours, state.snapshot.alive(state.request.now)
    before, after = neighbours.previous[rows], neighbours.following[rows]
    return np.where(alive[before], before, -1), np.where(alive[after], after, -1)


def _text(state: SearchState, found: Mapping[int, MemoryRecord], row: int) -> str | None:
    record = found.get(int(state.snapshot.columns.key[row])) if row >= 0 else None
    return None if record is None else record.indexed_text
