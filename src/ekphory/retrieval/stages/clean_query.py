"""Stage 1: the query without what a host has put around it, in one line, of a sensible length."""

from __future__ import annotations

from dataclasses import asdict, replace

from ekphory.queries.cleaning import LONGEST, clean_query
from ekphory.retrieval.state import SearchState


class CleanQuery:
    """Removes wrapping and folds white space; of an overlong query the end is kept.

    The cleaned query is empty only where nothing but white space was asked: where nothing but
    wrapping was, it is searched as it is, and the trace says so in `kept_as_given`.
    """

    number = 1
    name = "clean query"
    needs: frozenset[str] = frozenset()
    gives = frozenset({"query"})

    def __init__(self, *, longest: int = LONGEST) -> None:
        self.longest = longest

    def skip_reason(self, state: SearchState) -> str | None:
        """There is always a query."""
        del state
        return None

    def run(self, state: SearchState) -> SearchState:
        """Clean the query's text."""
        cleaned = clean_query(state.text, longest=self.longest)
        notes = {
            "characters_removed": len(state.text) - len(cleaned.text),
            "removed": {name: asdict(removal) for name, removal in cleaned.removed.items()},
            "kept_as_given": cleaned.kept_as_given,
        }
        return replace(state, text=cleaned.text, notes=notes)
