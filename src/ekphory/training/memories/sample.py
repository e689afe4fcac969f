"""What the generator makes: a query, the memory that answers it, and memories that do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ekphory.types import MemoryType

NegativeKind = Literal[
    "temporal",
    "type_confusion",
    "topic_drift",
    "entity_confusion",
    "negation",
    "number",
    "near_duplicate",
]
NEGATIVE_KINDS: tuple[NegativeKind, ...] = get_args(NegativeKind)

NEGATIVES = 7
"""Negatives of a sample; with the positive memory that is eight candidates."""


@dataclass(frozen=True, slots=True)
class GeneratedMemory:
    """One memory.

    Attributes:
        text: What is embedded; `speaker: text` where it is known who says it.
        days_ago: Its age in days, not negative.
        type: What kind of memory it is.
        importance: In [0, 1]; follows from the text.
    """

    text: str
    days_ago: float
    type: MemoryType
    importance: float


@dataclass(frozen=True, slots=True)
class HardNegative:
    """A memory that resembles the answer and is none.

    Attributes:
        kind: What is wrong with it: `temporal` the same at another age; `type_confusion` another
            type about the same; `topic_drift` the same said about another topic;
            `entity_confusion` another person or place; `negation` denied, or no longer true, or
            claimed where the query asks for that;
            `number` another number than the query names; `near_duplicate` almost the answer's
            words, about another thing or claimed by nobody, or the question itself.
        memory: The memory.
    """

    kind: NegativeKind
    memory: GeneratedMemory


@dataclass(frozen=True, slots=True)
class MemorySample:
    """One query with its candidates.

    Attributes:
        query: Asks in words; no age, type or importance comes with it.
        positive: The one memory that answers.
        negatives: `NEGATIVES` hard negatives, no two alike. A query without words for a time has no
            `temporal` one, a query without a number no `number` one; the other kinds are there.
    """

    query: str
    positive: GeneratedMemory
    negatives: tuple[HardNegative, ...]
