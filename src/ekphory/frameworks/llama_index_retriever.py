"""`EkphoryRetriever`: a memory as a retriever of LlamaIndex."""

from __future__ import annotations

import asyncio

from ekphory.errors import MissingExtra
from ekphory.filters.tree import Filter
from ekphory.frameworks.llama_index_nodes import node_of
from ekphory.memory import Memory
from ekphory.retrieval.pipeline import Pipeline

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle
except ImportError as error:
    raise MissingExtra("llama-index", "A retriever of LlamaIndex") from error


class EkphoryRetriever(BaseRetriever):
    """Finds what a memory's scope holds, for query engines, chat engines and agents.

    Args:
        memory: What is searched. It is not closed.
        k, filter, min_score, preset, agent_mode: As in `Memory.search`.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        k: int = 10,
        filter: str | Filter | None = None,  # noqa: A002  as in `Memory.search`
        min_score: float | None = None,
        preset: str | Pipeline | None = None,
        agent_mode: bool = False,
    ) -> None:
        super().__init__()
        self._memory = memory
        self._k = k
        self._filter = filter
        self._min_score = min_score
        self._preset = preset
        self._agent_mode = agent_mode

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._memory.search(
            query_bundle.query_str,
            k=self._k,
            filter=self._filter,
            min_score=self._min_score,
            preset=self._preset,
            agent_mode=self._agent_mode,
        )
        return [node_of(hit) for hit in found]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
