"""LangChain's retriever over a memory."""

from __future__ import annotations

from typing import Any

from ekphory.errors import MissingExtra

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ImportError as error:
    raise MissingExtra("langchain", "A retriever of LangChain") from error

from ekphory.memory import Memory
from ekphory.types import Hit

_SHOWN = ("pool", "producer", "role", "session", "source", "path", "heading")
"""Fields of a memory that a document tells where they are set."""


class EkphoryRetriever(BaseRetriever):
    """Finds the memories that answer a query, as documents.

        retriever = EkphoryRetriever(memory=Memory("./memories"), k=5)
        documents = retriever.invoke("what language does the user like?")

    A document's text is the memory's; its metadata tells `id`, `score` (the probability that it
    answers), `at`, `type`, `importance`, what else the memory says of its origin, and under
    `metadata` the caller's own. The arguments besides `memory` are those of `Memory.search`.
    """

    memory: Memory
    k: int = 10
    filter: str | None = None
    pools: tuple[str, ...] | None = None
    min_score: float | None = None
    preset: str | None = None
    agent_mode: bool = False

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002  LangChain's signature
    ) -> list[Document]:
        result = self.memory.search(
            query,
            k=self.k,
            filter=self.filter,
            pools=self.pools,
            min_score=self.min_score,
            preset=self.preset,
            agent_mode=self.agent_mode,
        )
        return [document_of(hit) for hit in result]


def document_of(hit: Hit) -> Document:
    """Give a hit as a document of LangChain."""
    memory = hit.memory
    origin = {name: getattr(memory, name) for name in _SHOWN}
    metadata: dict[str, Any] = {
        "id": hit.id,
        "score": hit.score,
        "at": memory.at.isoformat(),
        "type": memory.type,
        "importance": memory.importance,
        **{name: value for name, value in origin.items() if value},
        "metadata": dict(memory.metadata),
    }
    return Document(id=hit.id, page_content=hit.text, metadata=metadata)
