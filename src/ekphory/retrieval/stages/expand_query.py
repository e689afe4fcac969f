"""Stage 3: search other wordings of the query as well, given by a language model."""

from __future__ import annotations

from dataclasses import replace

from ekphory.errors import ServiceError
from ekphory.retrieval.query_widening import WIDENING, reason_not_to_ask
from ekphory.retrieval.reformulations import wording_prompt, wordings
from ekphory.retrieval.state import SearchState


class ExpandQuery:
    """Adds wordings that both arms search; a memory counts by the one that suits it best.

    Where the model fails or gives none, the query alone is searched, and the stage is degraded.

    Args:
        wordings: How many to ask for.
    """

    number = 3
    name = "multi-query"
    needs = frozenset({"query"})
    gives = frozenset({"wordings"})

    def __init__(self, *, wordings: int = 3) -> None:
        self.wordings = wordings

    def skip_reason(self, state: SearchState) -> str | None:
        """No language model, or a query that gives it nothing to go by."""
        return reason_not_to_ask(state)

    def run(self, state: SearchState) -> SearchState:
        """Ask for wordings and keep those that are some."""
        chat = state.resources.chat
        if chat is None:
            return state
        prompt = wording_prompt(state.text, count=self.wordings)
        try:
            answer = chat.complete(prompt, options=WIDENING)
        except ServiceError as error:
            return replace(state, degraded=f"{chat.name}: {error}")
        found = wordings(answer, query=state.text, count=self.wordings)
        if not found:
            return replace(state, degraded=f"{chat.name} gave no usable wording")
        variants = replace(state.variants, texts=found)
        return replace(state, variants=variants, notes={"wordings": len(found), "model": chat.name})
