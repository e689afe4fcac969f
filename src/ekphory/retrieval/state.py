"""What travels through a pipeline: the request, what is searched, and the candidates so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ekphory.retrieval.reranker_gate import GateDecision
from ekphory.retrieval.resources import Resources
from ekphory.retrieval.snapshot import ScopeSnapshot
from ekphory.types import ResultOrder, TimeUse

if TYPE_CHECKING:
    from ekphory.queries import QueryClass
    from ekphory.retrieval.time_arm import TimedRows
    from ekphory.temporal import TimeReading

IntArray = NDArray[np.int64]
ScoreArray = NDArray[np.float32]


NO_ROWS: IntArray = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What the caller asked.

    Attributes:
        query: The text as given.
        k: How many hits are wanted.
        now: The moment it is asked, microseconds since 1970.
        min_score: Calibrated probability below which nothing is returned; None for no limit.
        visible: Which rows of the snapshot may be returned at all, shape (rows,).
        context: The dialogue before the question, oldest turn first, each `speaker: text` or text
            alone: the reader has it before it already, and a reranker understands through it.
        pinned: Rows that are found and come first whatever they score.
        time: What a time in the query's words does.
        timezone: Where the days of the query begin and end.
    """

    query: str
    k: int
    now: int
    min_score: float | None
    visible: NDArray[np.bool_]
    context: tuple[str, ...] = ()
    pinned: IntArray = field(default_factory=lambda: NO_ROWS)
    time: TimeUse = "boost"
    timezone: str | tzinfo = "UTC"


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

    def scored_by_name(self, name: str, values: ScoreArray) -> Candidates:
        """Give the same candidates in the same order, with one more named score."""
        return replace(self, scores={**self.scores, name: values})

    def ranked(self, ranking: ScoreArray) -> Candidates:
        """Give the same candidates, ordered by other values."""
        return replace(self, ranking=ranking).sorted()

    def boosted(self, factors: ScoreArray) -> Candidates:
        """Give the same candidates with their ranking multiplied, and the product remembered."""
        boost = self.scores.get("boost")
        product = factors if boost is None else boost * factors
        return Candidates(
            self.rows, self.ranking * factors, {**self.scores, "boost": product}
        ).sorted()

    def in_order(self, places: NDArray[np.integer]) -> Candidates:
        """Give the candidates at these places, in this order, ranked by it."""
        chosen = self.take(places)
        return replace(chosen, ranking=np.sort(chosen.ranking)[::-1])

    def sorted(self) -> Candidates:
        """Best first; equal ones in the order in which they were written."""
        return self.take(np.lexsort((self.rows, -self.ranking)))

    def take(self, places: NDArray[np.integer] | NDArray[np.bool_] | slice) -> Candidates:
        """Give the candidates at these places, or those that are marked."""
        scores = {name: values[places] for name, values in self.scores.items()}
        return Candidates(self.rows[places], self.ranking[places], scores)


EMPTY = Candidates(NO_ROWS, np.empty(0, np.float32), {})


@dataclass(frozen=True, slots=True)
class QueryVariants:
    """What else is searched than the query's own text.

    Attributes:
        texts: Other wordings of the query; both arms search them too.
        vector: What the dense arm searches in place of the query's own embedding, shape
            (dimension,), of length 1; None for that embedding.
    """

    texts: tuple[str, ...] = ()
    vector: ScoreArray | None = None


NO_VARIANTS = QueryVariants()


@dataclass(frozen=True, slots=True)
class SearchState:
    """The state between two stages.

    Attributes:
        request: What was asked.
        snapshot: What is searched.
        resources: Models and readers that stages may use.
        text: The query as cleaned so far.
        query_class: What kind of query it is; None where no stage has said so.
        reading: What the query says about time; None where no stage has read it.
        timed: The rows in the times that it names; None where no stage has looked for them.
        variants: Further wordings of the query.
        candidates: What was found so far.
        gate: Whether the reranker is worth its time; None where no stage has said so.
        texts: By row, the text that is shown in place of the memory's own.
        notes: What the last stage has to say about itself, for the trace.
        degraded: Why the last stage used something lesser than it should have; None if it did not.
        order: What the candidates are ordered by, once stages are through.
    """

    request: SearchRequest
    snapshot: ScopeSnapshot
    resources: Resources
    text: str
    query_class: QueryClass | None = None
    reading: TimeReading | None = None
    timed: TimedRows | None = None
    variants: QueryVariants = NO_VARIANTS
    candidates: Candidates = EMPTY
    gate: GateDecision | None = None
    texts: Mapping[int, str] = field(default_factory=dict)
    notes: Mapping[str, object] | None = None
    degraded: str | None = None
    order: ResultOrder = "score"
