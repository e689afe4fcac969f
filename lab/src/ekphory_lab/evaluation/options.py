"""What `ekphory eval` measures, as the command line names it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ekphory.agent.provider import ProviderName
from ekphory.cli.options import EmbedderOption
from ekphory.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions:
    """What is measured, and what is shown and written.

    Attributes:
        system: ekphory, ekphory:PRESET, ekphory:PRESET:ignore (reads no time), bm25, dense, mean or
            rrf; repeatable, and the first is compared with the others.
        preset: Short for --system ekphory:PRESET.
        depth: How many passages each search asks for.
        category: Only questions of this category; repeatable, else the protocol's.
        ungated: Measure ekphory without the reranker's gate too: what it costs and saves.
        gated: Measure ekphory with the gate that was learned for its reranker too, likewise.
        unread: Measure ekphory without its reranker too: what reading is worth.
        show_misses: Show the twenty questions that went most wrong.
        agent: Measure the retrieval agent too, held by this provider.
    """

    system: list[str] | None = None
    preset: str | None = None
    embedder: EmbedderOption = None
    depth: int = 100
    category: list[str] | None = None
    ungated: bool = False
    gated: bool = False
    unread: bool = False
    show_misses: bool = False
    agent: ProviderName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """Which questions are asked, how memories are searched, and who judges.

    Attributes:
        preset: Preset of every search.
        agent: Search with the retrieval agent, held by this provider.
        depth: How many memories each search asks for.
        category: Only questions of this category; repeatable, else the protocol's.
        limit: At most so many questions, taken evenly from the set.
        judge: Ask the model too whether each answer is right.
    """

    preset: str | None = None
    embedder: EmbedderOption = None
    agent: ProviderName | None = None
    depth: int = 10
    category: list[str] | None = None
    limit: int | None = None
    judge: bool = False

    def check(self) -> None:
        """Refuse numbers that nothing can be measured with."""
        for name in ("depth", "limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidInput(name, value, "must be 1 or more", "Give 10, say.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankOptions:
    """Which rerankers read which candidates.

    Attributes:
        rerankers (NAMES): Separated by commas: none, bm25, bundled, ekphory-rerank-tiny, a model's
            directory or hub id, or a service's URL (EKPHORY_RERANKER_PROTOCOL, …_MODEL,
            …_API_KEY).
        candidates (FILE): Keep the candidates here; read again as long as they fit. Or somebody
            else's, such as BGE-M3's: rows of query_id, passage_ids and perhaps pool and scores.
        top: How many candidates each question has.
        share: How much the first stage's order weighs beside the reranker, 0 to 1.
    """

    rerankers: str = "none,bm25,bundled"
    candidates: Path | None = None
    top: int = 100
    share: float = 0.0

    def check(self) -> None:
        """Refuse numbers that nothing can be measured with."""
        if self.top < 1:
            raise InvalidInput("top", self.top, "must be 1 or more", "Give 100, say.")
        if not 0 <= self.share <= 1:
            raise InvalidInput("share", self.share, "must be between 0 and 1", "Give .3, say.")

    @property
    def names(self) -> list[str]:
        """The rerankers by name."""
        return [name.strip() for name in self.rerankers.split(",") if name.strip()]
