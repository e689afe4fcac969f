"""Asking a language model for more to search with: when it is worth asking, and how."""

from __future__ import annotations

from ekphory.models.chat import ChatOptions
from ekphory.retrieval.state import SearchState

WIDENING = ChatOptions(max_tokens=150, temperature=0.7)
"""Short answers that vary: a second try is to give another one."""
_SHORTEST_QUERY = 10
"""Characters of a query below which a model has nothing to go by."""


def reason_not_to_ask(state: SearchState) -> str | None:
    """Say why no model is asked: there is none, or the query gives it nothing to go by."""
    if state.resources.chat is None:
        return "no language model"
    short = len(state.text) < _SHORTEST_QUERY
    return f"the query is shorter than {_SHORTEST_QUERY} characters" if short else None
