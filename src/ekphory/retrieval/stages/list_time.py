"""Stage 9, last part: a query for a time alone gets what happened then, in order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ekphory.retrieval.state import SearchState


class ListTime:
    """Puts the memories in the time named first, in order, if the query asks for nothing else.

    Such a memory answers if the words were read rightly, so its probability becomes the
    confidence of the reading. Any other one answers only if they were not, so its own
    probability is multiplied with the rest of that confidence. Reranking and diversifying are
    skipped then, so the order lasts.
    """

    number = 9
    name = "list time"
    needs = frozenset({"timed", "probability"})
    gives = frozenset({"listed"})

    def skip_reason(self, state: SearchState) -> str | None:
        """Only a query for a time alone is answered by a list."""
        if state.timed is None or state.reading is None or not state.reading.only_time:
            return "the query asks for no time alone"
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Order anew, and say how probable each is."""
        candidates, timed, reading = state.candidates, state.timed, state.reading
        if timed is None or reading is None:
            return state
        confidence = timed.confidence[candidates.rows]
        surest = max((each.confidence for each in reading.references), default=0.0)
        others = candidates.scores["probability"] * np.float32(1 - surest)
        probability = np.where(confidence > 0, confidence, others).astype(np.float32)
        scores = {**candidates.scores, "time": confidence, "probability": probability}
        place_of = np.full(len(state.snapshot), len(timed.rows), np.int64)
        place_of[timed.rows] = np.arange(len(timed.rows))
        order = np.argsort(place_of[candidates.rows], kind="stable")
        listed = replace(candidates, scores=scores).in_order(order)
        notes = {"first": int(np.count_nonzero(confidence))}
        return replace(state, candidates=listed, notes=notes, order="time")
