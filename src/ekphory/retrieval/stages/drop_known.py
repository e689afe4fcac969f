"""Stage 15: what the conversation holds already is not told again."""

from __future__ import annotations

from dataclasses import replace

from ekphory.prompting.context_overlap import MOST_SHARED, already_said
from ekphory.retrieval.candidate_records import places_of, read_candidates
from ekphory.retrieval.state import SearchState


class DropKnown:
    """Drops memories whose words mostly stand in one of the request's context texts.

    The memory's own words are compared, not those of the parent that it is shown with.

    Args:
        most_shared: Share of its words above which a memory counts as known.
        among_per_hit: How many of the best candidates are looked at, for each hit wanted.
    """

    number = 15
    name = "context dedup"
    needs = frozenset({"probability"})
    gives = frozenset({"news"})

    def __init__(self, *, most_shared: float = MOST_SHARED, among_per_hit: int = 4) -> None:
        self.most_shared = most_shared
        self.among_per_hit = among_per_hit

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing is known without a context."""
        if not state.request.context:
            return "no context was given"
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Drop what is known."""
        most = self.among_per_hit * state.request.k
        candidates, records = read_candidates(state, most=most)
        texts = [record.text for record in records]
        said = already_said(texts, state.request.context, most_shared=self.most_shared)
        kept = [place for place, known in enumerate(said) if not known]
        places = places_of(kept, read=len(records), total=len(candidates))
        notes = {"dropped": len(records) - len(kept)}
        return replace(state, candidates=candidates.take(places), notes=notes)
