"""The end of every pipeline: drop what is too unlikely, keep the k best."""

from __future__ import annotations

from dataclasses import replace

from ekphory.retrieval.state import SearchState


class Cut:
    """Keeps candidates of at least `min_score` probability, and of those the first k."""

    number = 15
    name = "cut"
    needs = frozenset({"probability"})
    gives = frozenset({"hits"})

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to cut without candidates."""
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Cut the list."""
        request, candidates = state.request, state.candidates
        if request.min_score is not None:
            candidates = candidates.take(candidates.scores["probability"] >= request.min_score)
        below = len(state.candidates) - len(candidates)
        notes = {"below_min_score": below, "k": request.k}
        return replace(state, candidates=candidates.take(slice(0, request.k)), notes=notes)
