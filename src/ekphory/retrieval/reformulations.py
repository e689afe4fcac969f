"""Other wordings of a query by a language model, and which lines of its answer are wordings.

Source: what is kept and refused follows Memory-Spark's `parseReformulations`.
"""

from __future__ import annotations

import re

from ekphory.models.chat import ChatMessage
from ekphory.retrieval.hypothetical_document import without_thoughts

_SHORTEST, _LONGEST = 10, 300
_INSTRUCTION = (
    "Give {count} other wordings of the user's search query. Keep its meaning, its names and its "
    "dates; change vocabulary and form. One on each line, without numbers and explanations."
)
_MARK = re.compile(r"^(?:\d+[.)]|[-•*])\s*")
_QUOTES = re.compile(r"""^["'“”]+|["'“”]+$""")
_COMMENT = re.compile(r"^(?:Note:|Here\b|These\b|I |The above|Alternative)", re.IGNORECASE)
_PUNCTUATION = re.compile(r"[^\w\s]")


def wording_prompt(query: str, *, count: int) -> tuple[ChatMessage, ...]:
    """Ask for other wordings."""
    instruction = _INSTRUCTION.format(count=count)
    return ChatMessage("system", instruction), ChatMessage("user", query)


def wordings(answer: str, *, query: str, count: int) -> tuple[str, ...]:
    """Give the wordings in a model's answer, each once and none of them the query itself."""
    seen = {_compared(query)}
    found: list[str] = []
    for line in without_thoughts(answer).splitlines():
        text = _QUOTES.sub("", _MARK.sub("", line.strip())).strip()
        if not _SHORTEST <= len(text) <= _LONGEST or _COMMENT.match(text):
            continue
        if _compared(text) not in seen:
            seen.add(_compared(text))
            found.append(text)
    return tuple(found[:count])


def _compared(text: str) -> str:
    return " ".join(_PUNCTUATION.sub("", text.lower()).split())
