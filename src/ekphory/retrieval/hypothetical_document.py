"""A document that a language model makes up to answer a query, and whether it is any use.

Source: Gao, Ma, Lin and Callan, "Precise Zero-Shot Dense Retrieval without Relevance Labels", 2022;
what is refused follows Memory-Spark's `generateHypotheticalDocument`.
"""

from __future__ import annotations

import re

from ekphory.models.chat import ChatMessage

_SHORTEST, _FEWEST_WORDS = 20, 10
_INSTRUCTION = (
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


def document_prompt(query: str) -> tuple[ChatMessage, ...]:
    """Ask for a document that answers the query."""
    return ChatMessage("system", _INSTRUCTION), ChatMessage("user", query)


def usable_document(answer: str) -> str | None:
    """Give the document in a model's answer; None for junk: too short, or a refusal."""
    text = without_thoughts(answer)
    if len(text) < _SHORTEST or len(text.split()) < _FEWEST_WORDS or _REFUSAL.search(text):
        return None
    return text


def without_thoughts(answer: str) -> str:
    """Give an answer without what a model thought aloud before it."""
    return _LOOSE_MARK.sub("", _THOUGHT.sub("", answer)).strip()
