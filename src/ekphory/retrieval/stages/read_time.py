"""Stage 1, last part: which time the query names."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from ekphory.moments import EPOCH
from ekphory.retrieval.state import SearchState
from ekphory.temporal import TimeReference, read_time


class ReadTime:
    """Reads the time in the query's words: "last Tuesday", "in May", "our third session"."""

    number = 1
    name = "read time"
    needs = frozenset({"query"})
    gives = frozenset({"time"})

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to read where the caller wants time ignored."""
        return "time is ignored on request" if state.request.time == "ignore" else None

    def run(self, state: SearchState) -> SearchState:
        """Read the query's text."""
        now = EPOCH + timedelta(microseconds=state.request.now)
        reading = read_time(state.text, now=now, timezone=state.request.timezone)
        notes: dict[str, object] = {"found": [_note(each) for each in reading.references]}
        if reading.only_time:
            notes["asks_for"] = "the time alone"
        return replace(state, reading=reading, notes=notes, degraded=reading.missing)


def _note(reference: TimeReference) -> dict[str, object]:
    note: dict[str, object] = {"text": reference.text, "confidence": reference.confidence}
    if reference.kind == "event":
        note["unknown"] = "when that was; nothing is filtered or lifted by it"
    if reference.sessions is not None:
        note["sessions"] = [reference.sessions.first, reference.sessions.last]
    if reference.interval is not None:
        start, end = reference.interval.start, reference.interval.end
        note["from"] = None if start is None else start.isoformat()
        note["until"] = None if end is None else end.isoformat()
    return note
