"""`EkphoryRerank`: a reranker as a node postprocessor of LlamaIndex."""

from __future__ import annotations

from ekphory.errors import InvalidInput, MissingExtra
from ekphory.frameworks.llama_index_nodes import passage_of
from ekphory.models.agent_reranker import Reranker
from ekphory.moments import now_utc

try:
    from llama_index.core.bridge.pydantic import Field
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore, QueryBundle
except ImportError as error:
    raise MissingExtra("llama-index", "A postprocessor of LlamaIndex") from error


class EkphoryRerank(BaseNodePostprocessor):
    """Orders nodes, whichever retriever found them, by how likely they answer the query.

        rerank = EkphoryRerank(top_n=3)
        best = rerank.postprocess_nodes(nodes, query_str="what language does the user like?")

    A node's score becomes that probability. Nodes of `EkphoryRetriever` are read as memories,
    with who said them and when; others as LlamaIndex would embed them.

    Attributes:
        reranker: The model; by default the one that comes with ekphory.
        top_n: How many nodes are left at most; None for all.
        min_score: Only nodes of at least this probability; None for all.
    """

    reranker: Reranker = Field(default_factory=Reranker.from_pretrained, exclude=True)
    top_n: int | None = Field(default=None, ge=1)
    min_score: float | None = Field(default=None, ge=0, le=1)

    @classmethod
    def class_name(cls) -> str:
        """Give the name under which LlamaIndex shows it."""
        return "EkphoryRerank"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise InvalidInput(
                "query_bundle", None, "nodes are reranked for a query", "Give query_str as well"
            )
        if not nodes:
            return []
        passages = [passage_of(found) for found in nodes]
        query = query_bundle.query_str
        ranked = self.reranker.rank(query, passages, top_n=self.top_n, now=now_utc())
        least = self.min_score or 0.0
        return [
            NodeWithScore(node=nodes[entry.index].node, score=entry.score)
            for entry in ranked
            if entry.score >= least
        ]
