"""LangChain: a memory as a retriever, and a reranker as a document compressor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ekphory.errors import MissingExtra
from ekphory.memory import Memory
from ekphory.models.agent_reranker import Reranker
from ekphory.models.reranker import RerankPassage
from ekphory.types import Hit, now_utc, to_utc

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun, Callbacks
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import ConfigDict, Field
except ImportError as error:
    raise MissingExtra("langchain", "ekphory in LangChain") from error


SCORE = "relevance_score"
"""Key of the metadata under which LangChain's rerankers tell their scores."""

_OWN = frozenset({"id", "score", "at", "type", "importance", "metadata"})
"""What every document of `EkphoryRetriever` tells, by which it is known."""


class EkphoryCompressor(BaseDocumentCompressor):
    """Orders documents by the probability that they answer the query, and keeps the best.

        compressor = EkphoryCompressor(top_n=3)
        best = compressor.compress_documents(documents, "what language does the user like?")

    Each document that is kept says its probability as `relevance_score` in its metadata. Documents
    of `EkphoryRetriever` are read with their heading, who said them, and when.

    Attributes:
        reranker: The model; by default the one that comes with ekphory.
        top_n: How many documents to keep; None for all.
        min_score: Keeps only documents of at least this probability.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    reranker: Reranker = Field(default_factory=Reranker.from_pretrained)
    top_n: int | None = Field(default=None, ge=1)
    min_score: float | None = Field(default=None, ge=0, le=1)

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,  # noqa: ARG002  LangChain's signature
    ) -> list[Document]:
        """Return the documents that are kept, best first; those that came in stay as they are.

        Raises:
            ModelError: A local model failed.
            ServiceError: A service failed.
        """
        if not documents:
            return []
        passages = [_make_passage(document) for document in documents]
        ranked = self.reranker.rank(query, passages, top_n=self.top_n, now=now_utc())
        least = self.min_score or 0.0
        return [
            _add_score(documents[each.index], each.score) for each in ranked if each.score >= least
        ]


def _make_passage(document: Document) -> RerankPassage:
    """Return a document as a passage: a memory with what is known of it, another as its text."""
    told = document.metadata
    if not told.keys() >= _OWN:
        return RerankPassage(document.page_content)
    before = "".join(f"{told[name]}: " for name in ("heading", "producer") if name in told)
    return RerankPassage(before + document.page_content, at=to_utc(told["at"], field="at"))


def _add_score(document: Document, score: float) -> Document:
    return document.model_copy(update={"metadata": {**document.metadata, SCORE: score}})


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
        return [make_document(hit) for hit in result]


def make_document(hit: Hit) -> Document:
    """Return a hit as a document of LangChain."""
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
