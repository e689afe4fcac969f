"""Stage 7: near-identical passages of one source count once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from ekphory.retrieval.candidate_records import places_of, read_candidates
from ekphory.retrieval.near_duplicates import without_near_duplicates, words
from ekphory.retrieval.state import SearchState
from ekphory.store.owner import owner_of
from ekphory.types import MemoryRecord


class SourceDedup:
    """Of passages of one source whose words are nearly the same keeps the best.

    A memory's source is its parent, else its path, else its source, of one owner. A memory that
    has none of them was said, not copied: that somebody says the same again is an event of its own,
    so it is compared with nothing.

    Args:
        threshold: Jaccard similarity of the words above which two passages are one.
        among: How many of the best candidates are compared; the others are kept.
    """

    number = 7
    name = "source dedup"
    needs = frozenset({"probability"})
    gives = frozenset({"distinct"})

    def __init__(self, *, threshold: float = 0.85, among: int = 100) -> None:
        self.threshold = threshold
        self.among = among

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing repeats a single candidate."""
        return None if len(state.candidates) > 1 else "fewer than two candidates"

    def run(self, state: SearchState) -> SearchState:
        """Drop the repetitions."""
        candidates, records = read_candidates(state, most=self.among)
        kept = without_near_duplicates(
            [_origin(record) for record in records],
            [words(record.text) for record in records],
            threshold=self.threshold,
        )
        places = places_of(kept, read=len(records), total=len(candidates))
        notes = {"dropped": len(candidates) - len(places)}
        return replace(state, candidates=candidates.take(places), notes=notes)


def _origin(record: MemoryRecord) -> Hashable | None:
    for name in ("parent_id", "path", "source"):
        value = getattr(record, name)
        if value:
            return owner_of(record), name, value
    return None
