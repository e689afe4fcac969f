"""Stage 14: a part of a document is shown with the rest of it."""

from __future__ import annotations

from dataclasses import replace

from ekphory.errors import StoreError
from ekphory.retrieval.candidate_records import places_of, read_candidates
from ekphory.retrieval.parents import Family, families, family_of, joined_around
from ekphory.retrieval.state import SearchState


class ExpandParents:
    """Shows in place of each part its whole parent, and each parent once, at its best part.

    Parents are no rows, so they take no candidate's place before: they are joined from the parts
    in this scope that the request lets through. The hit's memory stays the part.

    Args:
        among_per_hit: How many of the best candidates are looked at, for each hit wanted.
        longest: Most characters of a parent; of a longer one the parts around the found one.
    """

    number = 14
    name = "expand parents"
    needs = frozenset({"probability"})
    gives = frozenset({"expanded"})

    def __init__(self, *, among_per_hit: int = 4, longest: int = 8_000) -> None:
        self.among_per_hit = among_per_hit
        self.longest = longest

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to expand without candidates."""
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Join the parents; parts whose siblings cannot be read stay as they are."""
        most = self.among_per_hit * state.request.k
        candidates, records = read_candidates(state, most=most)
        wanted = sorted({record.parent_id for record in records if record.parent_id})
        if not wanted:
            return replace(state, candidates=candidates, notes={"parents": 0})
        try:
            found = families(state.resources.children(wanted))
        except StoreError as error:
            return replace(state, candidates=candidates, degraded=f"parents not read: {error}")
        kept: list[int] = []
        shown: set[Family] = set()
        texts = dict(state.texts)
        for place, record in enumerate(records):
            family = family_of(record)
            if family in shown:
                continue
            kept.append(place)
            parts = found.get(family, []) if family else []
            if family and any(part.id == record.id for part in parts):
                shown.add(family)
                row = int(candidates.rows[place])
                texts[row] = joined_around(parts, record.id, longest=self.longest)
        expanded = candidates.take(places_of(kept, read=len(records), total=len(candidates)))
        return replace(state, candidates=expanded, texts=texts, notes={"parents": len(shown)})
