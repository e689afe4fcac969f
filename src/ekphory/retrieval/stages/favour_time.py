"""Stage 9, second part: what lies in the time that the query names ranks higher."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ekphory.retrieval.state import SearchState


class FavourTime:
    """Multiplies the ranking of what lies in the time named, if the query asks for more than it.

    Args:
        strength: The factor is 1 + strength times the confidence of the reading.
        told: The share of that for what was told within three days after the time.
    """

    number = 9
    name = "favour time"
    needs = frozenset({"timed", "probability"})
    gives = frozenset({"favoured"})

    def __init__(self, *, strength: float = 14.0, told: float = 0.5) -> None:
        self.strength = strength
        self.told = told

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to favour without a time, or where the time is all."""
        if state.timed is None or state.reading is None:
            return "the query names no time"
        if state.reading.only_time:
            return "the query asks for the time alone"
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Lift and order anew."""
        if state.timed is None:
            return state
        rows = state.candidates.rows
        confidence, told = state.timed.confidence[rows], state.timed.told[rows]
        factors = np.asarray(1 + self.strength * (confidence + self.told * told), np.float32)
        notes = {"strength": self.strength, "inside": int(np.count_nonzero(confidence))}
        return replace(state, candidates=state.candidates.boosted(factors), notes=notes)
