"""What a reranker reads: a question with what is known of it, and a passage likewise."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ekphory.types import MemoryType


@dataclass(frozen=True, slots=True)
class RerankQuery:
    """A question, as a reranker gets it.

    Attributes:
        text: The question.
        context: The dialogue before it, oldest turn first, each `speaker: text` or text alone.
        now: The moment it is asked, timezone-aware; None where it is not known.
        instruction: What counts as relevant, for models that are told so; None for the model's own.
    """

    text: str
    context: tuple[str, ...] = ()
    now: datetime | None = None
    instruction: str | None = None


@dataclass(frozen=True, slots=True)
class RerankPassage:
    """A passage, as a reranker gets it.

    Attributes:
        text: What is scored, `producer: text` or text alone.
        before, after: The previous and the next turn of the same session, likewise; None where
            there is none.
        at: When it happened, timezone-aware; None where it is not known.
        type: Kind of memory; None where nobody has said it.
    """

    text: str
    before: str | None = None
    after: str | None = None
    at: datetime | None = None
    type: MemoryType | None = None
