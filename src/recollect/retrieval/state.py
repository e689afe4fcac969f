"""What travels through a pipeline: the request, what is searched, and the candidates so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recollect.models.embedder import Embedder
from recollect.retrieval.snapshot import ScopeSnapshot

IntArray = NDArray[np.int64]
ScoreArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What the caller asked.

    Attributes:
        query: The text as given.
        k: How many hits are wanted.
        now: The moment it is asked, microseconds since 1970.
        min_score: Calibrated probability below which nothing is returned; None for no limit.
        visible: Which rows of the snapshot may be returned at all, shape (rows,).
    """

    query: str
    k: int
    now: int
    min_score: float | None
    visible: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows that may become hits, best first by `ranking`.

    Attributes:
        rows: Rows of the snapshot, shape (candidates,).
        ranking: What they are ordered by at this point.
        scores: Raw scores by name, each of shape (candidates,).
    """

    rows: IntArray
    ranking: ScoreArray
    scores: Mapping[str, ScoreArray]

    def __len__(self) -> int:
        return len(self.rows)

    def scored(self, name: str, values: ScoreArray) -> Candidates:
        """Give the same candidates with one more named score, ordered by it."""
        return Candidates(self.rows, values, {**self.scores, name: values}).sorted()

    def ranked(self, ranking: ScoreArray) -> Candidates:
        """Give the same candidates, ordered by other values."""
        return replace(self, ranking=ranking).sorted()

    def sorted(self) -> Candidates:
        """Best first; equal ones in the order in which they were written."""
        return self.take(np.lexsort((self.rows, -self.ranking)))

    def take(self, places: NDArray[np.integer] | NDArray[np.bool_] | slice) -> Candidates:
        """Give the candidates at these places, or those that are marked."""
        scores = {name: values[places] for name, values in self.scores.items()}
        return Candidates(self.rows[places], self.ranking[places], scores)


EMPTY = Candidates(np.empty(0, np.int64), np.empty(0, np.float32), {})


@dataclass(frozen=True, slots=True)
class SearchState:
    """The state between two stages.

    Attributes:
        request: What was asked.
        snapshot: What is searched.
        embedder: Embeds the query.
        text: The query as cleaned so far.
        candidates: What was found so far.
        notes: What the last stage has to say about itself, for the trace.
    """

    request: SearchRequest
    snapshot: ScopeSnapshot
    embedder: Embedder
    text: str
    candidates: Candidates = EMPTY
    notes: Mapping[str, object] | None = None
