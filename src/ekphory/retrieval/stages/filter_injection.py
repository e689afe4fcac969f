"""Stage 15: memories that try to steer the model that will read them are left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ekphory.prompting.injection import find_injection
from ekphory.retrieval.candidate_records import places_of, read_candidates
from ekphory.retrieval.state import SearchState


class FilterInjection:
    """Leaves out memories in whose text, or in that of the parent, an injection is found.

    What the filter finds, and what it cannot, `find_injection` says; the trace counts by rule.

    Args:
        among_per_hit: How many of the best candidates are looked at, for each hit wanted; those
            after them are left out unread.
    """

    number = 15
    name = "injection filter"
    needs = frozenset({"probability"})
    gives = frozenset({"harmless"})

    def __init__(self, *, among_per_hit: int = 4) -> None:
        self.among_per_hit = among_per_hit

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to look at without candidates."""
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Look at each text and keep the harmless ones."""
        most = self.among_per_hit * state.request.k
        candidates, records = read_candidates(state, most=most)
        found: Counter[str] = Counter()
        kept: list[int] = []
        for place, record in enumerate(records):
            shown = state.texts.get(int(candidates.rows[place]), record.text)
            verdict = find_injection(shown)
            if verdict.rule is None:
                kept.append(place)
            else:
                found[verdict.rule] += 1
        places = places_of(kept, read=len(records), total=len(records))
        notes = {"dropped": found.total(), **found}
        return replace(state, candidates=candidates.take(places), notes=notes)
