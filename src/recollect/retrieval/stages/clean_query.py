"""Stage 1: the query without surrounding and repeated white space, cut to a sensible length."""

from __future__ import annotations

from dataclasses import replace

from recollect.retrieval.state import SearchState


class CleanQuery:
    """Folds white space; of an overlong query the end is kept, where the question stands."""

    number = 1
    name = "clean query"
    needs: frozenset[str] = frozenset()
    gives = frozenset({"query"})

    def __init__(self, *, longest: int = 2000) -> None:
        self.longest = longest

    def skip_reason(self, state: SearchState) -> str | None:
        """There is always a query."""
        del state
        return None

    def run(self, state: SearchState) -> SearchState:
        """Clean the query's text."""
        folded = " ".join(state.text.split())
        text = folded[-self.longest :]
        removed = len(state.text) - len(text)
        return replace(state, text=text, notes={"characters_removed": removed})
