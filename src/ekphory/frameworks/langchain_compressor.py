"""LangChain's document compressor that keeps what a reranker finds relevant."""

from __future__ import annotations

from collections.abc import Sequence

from ekphory.errors import MissingExtra

try:
    from langchain_core.callbacks import Callbacks
    from langchain_core.documents import BaseDocumentCompressor, Document
    from pydantic import ConfigDict, Field
except ImportError as error:
    raise MissingExtra("langchain", "A document compressor of LangChain") from error

from ekphory.models.agent_reranker import Reranker
from ekphory.models.rerank_input import RerankPassage
from ekphory.moments import now_utc, to_utc

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
        """Give the documents that are kept, best first; those that came in stay as they are.

        Raises:
            ModelError: A local model failed.
            ServiceError: A service failed.
        """
        if not documents:
            return []
        passages = [_passage(document) for document in documents]
        ranked = self.reranker.rank(query, passages, top_n=self.top_n, now=now_utc())
        least = self.min_score or 0.0
        return [
            _scored(documents[each.index], each.score) for each in ranked if each.score >= least
        ]


def _passage(document: Document) -> RerankPassage:
    """Give a document as a passage: a memory with what is known of it, another as its text."""
    told = document.metadata
    if not told.keys() >= _OWN:
        return RerankPassage(document.page_content)
    before = "".join(f"{told[name]}: " for name in ("heading", "producer") if name in told)
    return RerankPassage(before + document.page_content, at=to_utc(told["at"], field="at"))


def _scored(document: Document, score: float) -> Document:
    return document.model_copy(update={"metadata": {**document.metadata, SCORE: score}})
