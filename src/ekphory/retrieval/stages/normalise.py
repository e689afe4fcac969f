"""Stage 10: the best candidate ranks at 1."""

from __future__ import annotations

from dataclasses import replace

from ekphory.retrieval.state import SearchState


class Normalise:
    """Divides the ranking by its largest value; order and probabilities stay as they are."""

    number = 10
    name = "normalise"
    needs = frozenset({"probability"})
    gives = frozenset({"normalised"})

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to divide by without a positive value."""
        if not len(state.candidates):
            return "no candidates"
        return None if state.candidates.ranking[0] > 0 else "the best ranking is not above 0"

    def run(self, state: SearchState) -> SearchState:
        """Scale the ranking."""
        candidates = state.candidates
        return replace(
            state, candidates=candidates.ranked(candidates.ranking / candidates.ranking[0])
        )
