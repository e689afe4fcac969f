"""The values of episodic memory: what is said, what is looked for, what is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ekphory.results import SearchResult
from ekphory.types import MemoryRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Something that was said.

    Attributes:
        content: The words.
        producer, produced_for, role: Who said it, to whom, in which chat role.
        at: When; None for now.
        metadata: The caller's own; `session_id` in it also says which conversation it was in.
    """

    content: str
    producer: str = "user"
    produced_for: str = ""
    role: str = ""
    at: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeQuery:
    """What is looked for.

    Attributes:
        text: The question; empty for the newest.
        limit: How many episodes.
        filter: A condition in the filter grammar; blank for none.
        min_score: Only episodes of at least this probability.
        expand: How many neighbours each found episode brings with it, within `limit`.
        agent_mode: Whether the retrieval agent follows the question from memory to memory.
    """

    text: str
    limit: int = 10
    filter: str = ""
    min_score: float | None = None
    expand: int = 0
    agent_mode: bool = False


@dataclass(frozen=True, slots=True)
class Episode:
    """A stored message, and how likely it answers; None where nothing was asked of it."""

    record: MemoryRecord
    score: float | None = None


@dataclass(frozen=True, slots=True)
class FoundEpisodes:
    """What a search found.

    Attributes:
        long_term: What answers, the likeliest first, without what is in `short_term`.
        short_term: The newest episodes, in the order in which they were said.
        result: What the search gave; None where long-term memory is switched off.
    """

    long_term: tuple[Episode, ...]
    short_term: tuple[Episode, ...]
    result: SearchResult | None
