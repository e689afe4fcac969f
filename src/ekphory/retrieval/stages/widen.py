"""Stages 2 and 3: other texts to search with, by a language model."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ekphory.errors import ServiceError
from ekphory.models.chat import Chat, ChatMessage, ChatOptions
from ekphory.retrieval.pipeline import SearchState, Stage

# Asking a language model for more to search with: when it is worth asking, and how.

WIDENING = ChatOptions(max_tokens=150, temperature=0.7)
"""Short answers that vary: a second try is to give another one."""
_SHORTEST_QUERY = 10
"""Characters of a query below which a model has nothing to go by."""


def reason_not_to_ask(stage: object, state: SearchState) -> str | None:
    """Say why no model is asked: there is none, or the query gives it nothing to go by."""
    del stage
    if state.resources.chat is None:
        return "no language model"
    short = len(state.text) < _SHORTEST_QUERY
    return f"the query is shorter than {_SHORTEST_QUERY} characters" if short else None


# A document that a language model makes up to answer a query, and whether it is any use.
#
# Source: Gao, Ma, Lin and Callan, "Precise Zero-Shot Dense Retrieval without Relevance Labels",
# 2022; what is refused follows Memory-Spark's `generateHypotheticalDocument`.

_SHORTEST, _FEWEST_WORDS = 20, 10
_DOCUMENT_INSTRUCTION = (
    "Write two to four sentences of a document that contains the answer to the user's question. "
    "Write as that document would, stating facts, and do not address the question or the reader."
)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_LOOSE_MARK = re.compile(r"</?think>", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\bi don[’']?t know\b|\bcannot determine\b|\bnot enough information\b"
    r"|\bunable to (?:answer|provide|determine)\b|\bno information (?:available|provided)\b"
    r"|\bas an ai\b|\bi[’']?m not sure\b|\bi cannot\b",
    re.IGNORECASE,
)


def usable_document(answer: str) -> str | None:
    """Return the document in a model's answer; None for junk: too short, or a refusal."""
    text = strip_thoughts(answer)
    if len(text) < _SHORTEST or len(text.split()) < _FEWEST_WORDS or _REFUSAL.search(text):
        return None
    return text


def strip_thoughts(answer: str) -> str:
    """Return an answer without what a model thought aloud before it."""
    return _LOOSE_MARK.sub("", _THOUGHT.sub("", answer)).strip()


# Other wordings of a query by a language model, and which lines of its answer are wordings.
#
# Source: what is kept and refused follows Memory-Spark's `parseReformulations`.

_SHORTEST_WORDING, _LONGEST = 10, 300
_WORDINGS_INSTRUCTION = (
    "Give {count} other wordings of the user's search query. Keep its meaning, its names and its "
    "dates; change vocabulary and form. One on each line, without numbers and explanations."
)
_MARK = re.compile(r"^(?:\d+[.)]|[-•*])\s*")
_QUOTES = re.compile(r"""^["'“”]+|["'“”]+$""")
_COMMENT = re.compile(r"^(?:Note:|Here\b|These\b|I |The above|Alternative)", re.IGNORECASE)
_PUNCTUATION = re.compile(r"[^\w\s]")


def wording_prompt(query: str, *, count: int) -> tuple[ChatMessage, ...]:
    """Ask for other wordings."""
    instruction = _WORDINGS_INSTRUCTION.format(count=count)
    return ChatMessage("system", instruction), ChatMessage("user", query)


def read_wordings(answer: str, *, query: str, count: int) -> tuple[str, ...]:
    """Return the wordings in a model's answer, each once and none of them the query itself."""
    seen = {_compared(query)}
    found: list[str] = []
    for line in strip_thoughts(answer).splitlines():
        text = _QUOTES.sub("", _MARK.sub("", line.strip())).strip()
        if not _SHORTEST_WORDING <= len(text) <= _LONGEST or _COMMENT.match(text):
            continue
        if _compared(text) not in seen:
            seen.add(_compared(text))
            found.append(text)
    return tuple(found[:count])


def _compared(text: str) -> str:
    return " ".join(_PUNCTUATION.sub("", text.lower()).split())


# Stage 2: search with a document that would answer the query, made up by a language model.


@dataclass(frozen=True, kw_only=True, eq=False)
class Hyde(Stage):
    """Gives the dense arm the vector of a hypothetical document (HyDE).

    Where the model fails, or answers junk twice, the query is searched plainly, and the stage is
    degraded. Words are always looked for as they were asked.

    Attributes:
        use: `average` searches between document and query, `replace` with the document alone.
        attempts: How often a model may answer junk.
    """

    number = 2
    name = "hyde"
    needs = frozenset({"query"})
    skip_reason = reason_not_to_ask

    use: Literal["average", "replace"] = "average"
    attempts: int = 2

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
        return replace(state, vector=vector, notes={"use": self.use, "model": chat.name})

    def _document(self, chat: Chat, query: str) -> str | None:
        prompt = ChatMessage("system", _DOCUMENT_INSTRUCTION), ChatMessage("user", query)
        answers = (chat.complete(prompt, options=WIDENING) for _ in range(self.attempts))
        return next(filter(None, map(usable_document, answers)), None)


# Stage 3: search other wordings of the query as well, given by a language model.


@dataclass(frozen=True, kw_only=True, eq=False)
class ExpandQuery(Stage):
    """Adds wordings that both arms search; a memory counts by the one that suits it best.

    Where the model fails or gives none, the query alone is searched, and the stage is degraded.

    Attributes:
        wordings: How many to ask for.
    """

    number = 3
    name = "multi-query"
    needs = frozenset({"query"})
    skip_reason = reason_not_to_ask

    wordings: int = 3

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
        found = read_wordings(answer, query=state.text, count=self.wordings)
        if not found:
            return replace(state, degraded=f"{chat.name} gave no usable wording")
        return replace(state, wordings=found, notes={"wordings": len(found), "model": chat.name})
