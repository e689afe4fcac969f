"""Stage 4, first part: the memories in the time that the query names."""

from __future__ import annotations

from dataclasses import replace

from ekphory.retrieval.state import SearchState
from ekphory.retrieval.time_arm import timed_rows


class SearchTime:
    """Finds all memories in the times and sessions that the query names.

    Where the caller wants time to filter, nothing else is visible any more.
    """

    number = 4
    name = "search time"
    needs = frozenset({"time"})
    gives = frozenset({"timed"})

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to find without a time."""
        reading = state.reading
        if reading is None or not reading.references:
            return "the query names no time"
        if all(each.kind == "event" for each in reading.references):
            return "the query names an event and no time, so nothing is filtered"
        return None

    def run(self, state: SearchState) -> SearchState:
        """Find the rows."""
        request, reading = state.request, state.reading
        if reading is None:
            return state
        timed = timed_rows(state.snapshot, reading, visible=request.visible, now=request.now)
        notes: dict[str, object] = {"inside": len(timed.rows), "by_words": timed.found}
        if timed.widened:
            notes["widened"] = list(timed.widened)
        if request.time == "filter":
            pinned = request.pinned[timed.inside[request.pinned]]
            request = replace(request, visible=timed.inside, pinned=pinned)
        return replace(state, request=request, timed=timed, notes=notes)
