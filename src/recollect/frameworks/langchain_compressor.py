"""LangChain's document compressor that keeps what a reranker finds relevant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from recollect.errors import InvalidInput, MissingExtra

try:
    from langchain_core.callbacks import Callbacks
    from langchain_core.documents import BaseDocumentCompressor, Document
    from pydantic import ConfigDict, Field
except ImportError as error:
    raise MissingExtra("langchain", "A document compressor of LangChain") from error

from recollect.models.agent_reranker import Reranker
from recollect.models.rerank_input import RerankPassage
from recollect.moments import now_utc, to_utc

SCORE = "relevance_score"
"""Key of the metadata under which LangChain's rerankers tell their scores."""


class RecollectCompressor(BaseDocumentCompressor):
    """Orders documents by the probability that they answer the query, and keeps the best.

        compressor = RecollectCompressor(top_n=3)
        best = compressor.compress_documents(documents, "what language does the user like?")

    Each document that is kept says its probability as `relevance_score` in its metadata. Documents
    of `RecollectRetriever` are read with their heading, who said them, and when.

    Attributes:
        reranker: The model; by default the one that comes with recollect.
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
        scores = self.reranker.score(query, passages, now=now_utc()).tolist()
        ranked = sorted(zip(scores, documents, strict=True), key=lambda pair: -pair[0])
        least = self.min_score or 0.0
        kept = (pair for pair in ranked[: self.top_n] if pair[0] >= least)
        return [_scored(document, score) for score, document in kept]


def _passage(document: Document) -> RerankPassage:
    """Give a document as a memory is read, as far as its metadata tells what that takes."""
    told = (document.metadata.get(name) for name in ("heading", "producer"))
    before = "".join(f"{name}: " for name in told if name and isinstance(name, str))
    return RerankPassage(before + document.page_content, at=_moment(document.metadata.get("at")))


def _moment(told: object) -> datetime | None:
    if not isinstance(told, str | datetime):
        return None
    try:
        return to_utc(told, field="at")
    except InvalidInput:
        # Documents of other sources may call something else by this name.
        return None


def _scored(document: Document, score: float) -> Document:
    return document.model_copy(update={"metadata": {**document.metadata, SCORE: score}})
