"""Stage 12, after the probabilities: notes lend a share of theirs along the links between them.

Who asks about the director of a film finds the note of the film, and the answer stands in the note
that it links to. A note that is linked with one of the best therefore gets a share of that one's
probability, beside its own, also where no arm has found it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ekphory.documents.notes import JOINER, REFERENCES
from ekphory.errors import StoreError
from ekphory.retrieval.pipeline import NO_ROWS, SearchState, Stage, read_candidates
from ekphory.types import MemoryRecord


@dataclass(frozen=True, kw_only=True, eq=False)
class FollowLinks(Stage):
    """Adds to a memory's probability a share of that of a better one which links join it with.

    A link leads to the best memory of its note, or to the first one where none was found, and back
    from a note to those that link to it and were found. What one memory lends is divided by
    how many it lends to, so that a list of links lifts none of them much; of several that lend to
    one memory the most counts. Where none of the best has a link, nothing is read or changed.

    Attributes:
        share: What is lent of a probability, in all.
        lending: How many of the best candidates lend.
        among: How many of the best candidates are looked at for links between them, and how many
            links are followed to notes that are not among them.
    """

    number = 12
    name = "follow links"
    needs = frozenset({"probability"})

    share: float = 0.1
    lending: int = 10
    among: int = 30

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing is lent in a list that time orders."""
        if state.order == "time":
            return "the list is in the order of time"
        return super().skip_reason(state)

    def run(self, state: SearchState) -> SearchState:
        """Lend along the links of the best candidates."""
        candidates, best = read_candidates(state, most=self.lending)
        state = replace(state, candidates=candidates)
        if not any(map(links_of, best)):
            return replace(state, notes={"lent": 0})
        candidates, found = read_candidates(state, most=self.among)
        rows = candidates.rows[: len(found)].tolist()
        try:
            linked = _Linked.of(state, list(zip(rows, found, strict=True)), self)
        except StoreError as error:
            return replace(state, degraded=f"linked notes not read: {error}")
        lent: dict[int, float] = {}
        for place, record in enumerate(found[: self.lending]):
            goals = linked.goals(rows[place], record)
            probability = float(candidates.scores["probability"][place])
            for goal in goals:
                lent[goal] = max(lent.get(goal, 0.0), self.share * probability / len(goals))
        candidates = candidates.joined_by(lent)
        extra = np.array([lent.get(row, 0.0) for row in candidates.rows.tolist()])
        probability = np.minimum(candidates.scores["probability"] + extra, 1).astype(np.float32)
        changed = candidates.scored_by_name("probability", probability)
        order = np.lexsort((np.arange(len(changed)), -probability))
        return replace(state, candidates=changed.in_order(order), notes={"lent": len(lent)})


def links_of(record: MemoryRecord) -> tuple[str, ...]:
    """Return the notes that a memory links to, in lower case, without what leads up to them."""
    joined = str(record.metadata.get(REFERENCES, "")).lower()
    return tuple(filter(None, (each.lstrip("./").strip() for each in joined.split(JOINER))))


def is_called(record: MemoryRecord, link: str) -> bool:
    """Say whether a link means a memory's note: by its name, or by the end of its path."""
    path = (record.path or "").lower().removesuffix(".md")
    return path == link or path.endswith(f"/{link}")


@dataclass(frozen=True, slots=True)
class _Linked:
    """Rows and memories to which links may lead, the best first; first passages after them."""

    found: Sequence[tuple[int, MemoryRecord]]
    openings: Sequence[tuple[int, MemoryRecord]]

    @classmethod
    def of(
        cls, state: SearchState, found: Sequence[tuple[int, MemoryRecord]], limits: FollowLinks
    ) -> _Linked:
        links = {link: None for _, each in found[: limits.lending] for link in links_of(each)}
        unknown = [link for link in links if not any(is_called(each, link) for _, each in found)]
        keys = state.resources.openings(unknown[: limits.among]) if unknown else NO_ROWS
        rows = state.snapshot.rows_of(keys)
        rows = rows[rows >= 0]
        rows = rows[state.request.visible[rows]]
        keys = state.snapshot.columns.key[rows]
        records = state.resources.records(keys.tolist())
        pairs = zip(rows.tolist(), keys.tolist(), strict=True)
        openings = [(row, records[key]) for row, key in pairs if key in records]
        # Of two notes of one name the one nearer to the top is meant.
        return cls(found, sorted(openings, key=lambda pair: (len(pair[1].path or ""), pair[0])))

    def goals(self, row: int, record: MemoryRecord) -> list[int]:
        """Return the rows that a memory's links join it with."""
        leads = (self._goal(link) for link in links_of(record))
        back = (
            other
            for other, each in self.found
            if any(is_called(record, link) for link in links_of(each))
        )
        goals = dict.fromkeys((*leads, *back))
        return [goal for goal in goals if goal is not None and goal != row]

    def _goal(self, link: str) -> int | None:
        called = (row for row, each in (*self.found, *self.openings) if is_called(each, link))
        return next(called, None)
