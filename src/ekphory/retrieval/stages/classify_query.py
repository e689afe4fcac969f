"""Stage 1, second half: what kind of query it is."""

from __future__ import annotations

from dataclasses import replace

from ekphory.queries.classification import classify_query
from ekphory.queries.depth import depth_factor
from ekphory.retrieval.state import SearchState


class ClassifyQuery:
    """Says what kind of query it is, by its words alone; later stages search and weigh by it."""

    number = 1
    name = "classify query"
    needs = frozenset({"query"})
    gives = frozenset({"query_class"})

    def skip_reason(self, state: SearchState) -> str | None:
        """There is always a query."""
        del state
        return None

    def run(self, state: SearchState) -> SearchState:
        """Classify the query's text."""
        found = classify_query(state.text)
        notes = {
            "intent": found.intent,
            "complexity": found.complexity,
            "signals": list(found.signals),
            "hints": found.hints.given,
            "depth_factor": depth_factor(found),
        }
        return replace(state, query_class=found, notes=notes)
