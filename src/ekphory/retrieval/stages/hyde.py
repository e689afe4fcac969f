"""Stage 2: search with a document that would answer the query, made up by a language model."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from ekphory.errors import ServiceError
from ekphory.models.chat import Chat
from ekphory.retrieval.hypothetical_document import document_prompt, usable_document
from ekphory.retrieval.query_widening import WIDENING, reason_not_to_ask
from ekphory.retrieval.state import SearchState


class Hyde:
    """Gives the dense arm the vector of a hypothetical document (HyDE).

    Where the model fails, or answers junk twice, the query is searched plainly, and the stage is
    degraded. Words are always looked for as they were asked.

    Args:
        use: `average` searches between document and query, `replace` with the document alone.
        attempts: How often a model may answer junk.
    """

    number = 2
    name = "hyde"
    needs = frozenset({"query"})
    gives = frozenset({"query vector"})

    def __init__(
        self, *, use: Literal["average", "replace"] = "average", attempts: int = 2
    ) -> None:
        self.use = use
        self.attempts = attempts

    def skip_reason(self, state: SearchState) -> str | None:
        """No language model, or a query that gives it nothing to go by."""
        return reason_not_to_ask(state)

    def run(self, state: SearchState) -> SearchState:
        """Make up a document and embed it."""
        chat = state.resources.chat
        if chat is None:
            return state
        try:
            document = self._document(chat, state.text)
        except ServiceError as error:
            return replace(state, degraded=f"{chat.name}: {error}")
        if document is None:
            return replace(state, degraded=f"{chat.name} gave no usable document")
        embedder = state.resources.embedder
        vector = np.asarray(embedder.encode([document])[0], np.float32)
        if self.use == "average":
            vector = vector + np.asarray(embedder.encode_query([state.text])[0], np.float32)
            vector /= max(float(np.linalg.norm(vector)), 1e-12)
        variants = replace(state.variants, vector=vector)
        return replace(state, variants=variants, notes={"use": self.use, "model": chat.name})

    def _document(self, chat: Chat, query: str) -> str | None:
        for _ in range(self.attempts):
            document = usable_document(chat.complete(document_prompt(query), options=WIDENING))
            if document is not None:
                return document
        return None
