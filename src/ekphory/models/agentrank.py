"""AgentRank's names: its embedder and its reranker, asked as the package `agentrank` asks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ekphory.models.agent_embedder import AgeInDays, Embedder
from ekphory.models.agent_reranker import Reranker
from ekphory.models.embedder import FloatMatrix
from ekphory.models.torch_embedder import SavedFormat
from ekphory.types import MemoryType


class AgentRankEmbedder(Embedder):
    """An `Embedder` that is asked as AgentRank's is, and saved so that `agentrank` loads it.

        model = AgentRankEmbedder.from_pretrained("bundled")
        model.encode(["User prefers Python"], temporal_info=[7], memory_types=["semantic"])
        model.save_pretrained("folder")

    `AgentRankEmbedder.from_pretrained("folder")` of `agentrank` 0.1.3 gives the same vectors.
    """

    def encode(
        self,
        texts: str | Sequence[str],
        temporal_info: Sequence[AgeInDays] | None = None,
        memory_types: Sequence[MemoryType | None] | None = None,
        *,
        days_ago: AgeInDays | Sequence[AgeInDays] = None,
        memory_type: MemoryType | Sequence[MemoryType | None] | None = None,
    ) -> FloatMatrix:
        """Embed memories; returns shape (len(texts), dimension), rows of length 1.

        Args:
            texts: The memories; a single text counts as a list of one.
            temporal_info: Age in days of each, as the package calls it.
            memory_types: Type of each, as the package calls it.
            days_ago: The ages, as the model card calls them; one value counts for all.
            memory_type: The types, likewise.

        Raises:
            InvalidInput, ModelError: As `Embedder.encode`.
        """
        ages = days_ago if temporal_info is None else temporal_info
        types = memory_type if memory_types is None else memory_types
        return super().encode(texts, days_ago=ages, memory_type=types)

    def save_pretrained(
        self,
        path: str | Path,
        *,
        formats: Sequence[SavedFormat] | None = ("agentrank",),
        results: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        """Write a directory that `agentrank` loads too; otherwise as `Embedder.save_pretrained`."""
        super().save_pretrained(path, formats=formats, results=results)


class AgentRankReranker(Reranker):
    """A `Reranker` with the function of AgentRank's second stage.

    reranker = AgentRankReranker.from_pretrained("vrushket/agentrank-reranker")
    reranker.rerank("What's my Python preference?", candidates, top_k=10)
    """

    def rerank(
        self, query: str, candidates: Sequence[str], top_k: int = 10
    ) -> list[tuple[float, str]]:
        """Return the best candidates with the probability that each answers, best first.

        Raises:
            InvalidInput, ModelError, ServiceError: As `Reranker.rank`.
        """
        ranked = self.rank(query, candidates, top_n=top_k)
        return [(each.score, candidates[each.index]) for each in ranked]
