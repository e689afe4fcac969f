"""Stage 15: no more hits than a prompt has room for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ekphory.prompting.token_budget import within_budget
from ekphory.retrieval.candidate_records import read_candidates
from ekphory.retrieval.state import SearchState


class FitBudget:
    """Keeps the best hits whose texts together fit a budget of tokens.

    One that does not fit is passed over, and what follows is tried, until there are as many as were
    asked for. A text counts as it is shown: with its parent.

    Args:
        tokens: The budget.
        among_per_hit: How many of the best candidates are tried, for each hit wanted.
    """

    number = 15
    name = "token budget"
    needs = frozenset({"probability"})
    gives = frozenset({"fitting"})

    def __init__(self, *, tokens: int = 2000, among_per_hit: int = 4) -> None:
        self.tokens = tokens
        self.among_per_hit = among_per_hit

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to fit without candidates."""
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        """Keep what fits."""
        most = self.among_per_hit * state.request.k
        candidates, records = read_candidates(state, most=most)
        shown = [
            state.texts.get(int(row), record.text)
            for row, record in zip(candidates.rows, records, strict=False)
        ]
        kept = within_budget(shown, self.tokens)[: state.request.k]
        notes = {"budget": self.tokens, "passed_over": len(shown) - len(kept)}
        chosen = candidates.take(np.array(kept, np.int64))
        return replace(state, candidates=chosen, notes=notes)
