"""LlamaIndex: a memory as a retriever or a memory block, a reranker as a node postprocessor."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from ekphory.errors import InvalidInput, MissingExtra
from ekphory.filters.tree import Filter
from ekphory.memory import Memory
from ekphory.models.agent_reranker import Reranker
from ekphory.models.reranker import RerankPassage
from ekphory.prompting.block import estimate_tokens
from ekphory.retrieval.pipeline import Pipeline
from ekphory.search import SearchResult
from ekphory.types import Hit, MemoryRecord, now_utc, to_utc
from ekphory.write import LONGEST_TEXT

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
    from llama_index.core.utils import get_tokenizer
except ImportError as error:
    raise MissingExtra("llama-index", "Ekphory in LlamaIndex") from error


_ID = "memory_id"
_OWN = frozenset({_ID, "at", "type", "importance"})
"""What the node of every memory tells, by which it is known."""
_SHOWN = ("at", "producer", "heading")
"""What a language model is shown of a memory besides its text; an embedder all but the moment."""
_FIELDS = (
    *("producer", "heading", "type", "importance", "role", "session", "pool"),
    *("source", "path", "lines"),
)


def make_node(hit: Hit) -> NodeWithScore:
    """Return a hit as a node; its score is a probability.

    The metadata holds the memory's fields and its own metadata, of which a key that is called as
    a field is named `metadata.<key>`.
    """
    metadata = _make_metadata(hit.memory)
    node = TextNode(
        id_=hit.id,
        text=hit.text,
        metadata=metadata,
        excluded_llm_metadata_keys=[name for name in metadata if name not in _SHOWN],
        excluded_embed_metadata_keys=[name for name in metadata if name not in _SHOWN[1:]],
    )
    return NodeWithScore(node=node, score=hit.score)


def make_passage(found: NodeWithScore) -> RerankPassage:
    """Return a node as a passage: a memory as such, another as LlamaIndex would embed it."""
    node = found.node
    if not node.metadata.keys() >= _OWN:
        return RerankPassage(node.get_content(metadata_mode=MetadataMode.EMBED))
    around = "".join(f"{node.metadata[name]}: " for name in _SHOWN[:0:-1] if name in node.metadata)
    moment = to_utc(node.metadata["at"], field="at")
    return RerankPassage(around + node.get_content(metadata_mode=MetadataMode.NONE), at=moment)


def _make_metadata(record: MemoryRecord) -> dict[str, Any]:
    fields = {
        _ID: record.id,
        "at": record.at.isoformat(),
        **{name: getattr(record, name) for name in _FIELDS},
    }
    given = {name: value for name, value in fields.items() if value not in (None, "")}
    own = {
        f"metadata.{name}" if name in fields else name: value
        for name, value in record.metadata.items()
    }
    return given | own


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
        """Return the name under which LlamaIndex shows it."""
        return "EkphoryRerank"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            problem = "nodes are reranked for a query"
            raise InvalidInput("query_bundle", None, problem, "Give query_str as well")
        if not nodes:
            return []
        passages = [make_passage(found) for found in nodes]
        query = query_bundle.query_str
        ranked = self.reranker.rank(query, passages, top_n=self.top_n, now=now_utc())
        least = self.min_score or 0.0
        return [
            NodeWithScore(node=nodes[entry.index].node, score=entry.score)
            for entry in ranked
            if entry.score >= least
        ]


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
        self._search = partial(
            memory.search,
            k=k,
            filter=filter,
            min_score=min_score,
            preset=preset,
            agent_mode=agent_mode,
        )

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [make_node(hit) for hit in self._search(query_bundle.query_str)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


_SAID = ("user", "assistant")


class EkphoryMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memory of a chat, for `Memory` of LlamaIndex.

        block = EkphoryMemoryBlock(memory=Memory("./memories", user="mara"))
        memory = llama_index.core.memory.Memory.from_defaults(memory_blocks=[block])

    What user and assistant said is remembered when the short-term memory lets go of it, in the
    session whose messages they are; what answers the last question is shown to the model, as a
    block that says that it is data and no instruction.

    Attributes:
        memory: Where it is kept. It is not closed.
        k, filter, min_score, preset: What is shown, as in `Memory.search`.
        max_tokens: How long the block is at most.
    """

    name: str = "ekphory"
    priority: int = 1
    memory: Memory = Field(exclude=True)
    k: int = Field(default=10, ge=1)
    filter: str | None = None
    min_score: float | None = Field(default=None, ge=0, le=1)
    preset: str | None = None
    max_tokens: int = Field(default=1000, ge=1)
    _shown: tuple[str, SearchResult] | None = PrivateAttr(default=None)

    async def _aget(
        self,
        messages: list[ChatMessage] | None = None,
        **block_kwargs: Any,  # noqa: ANN401, ARG002  LlamaIndex's signature
    ) -> str:
        asked = [message.content for message in messages or () if message.role.value == "user"]
        if not asked or not (asked[-1] or "").strip():
            return ""
        found = await asyncio.to_thread(
            self.memory.search,
            asked[-1] or "",
            k=self.k,
            filter=self.filter,
            min_score=self.min_score,
            preset=self.preset,
        )
        if not found.hits:
            return ""
        content = found.to_prompt(self.max_tokens)
        self._shown = (content, found)
        return content

    async def _aput(self, messages: list[ChatMessage]) -> None:
        said = [message for message in messages if message.role.value in _SAID]
        read = [self._make_message(message) for message in said]
        # The short-term memory has let go of all: one without words must not keep out the others.
        told = [message for message in read if message["content"].strip()]
        if told:
            await asyncio.to_thread(self.memory.add_messages, told)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return the block with fewer of its memories; None where none has room.

        The room is counted as LlamaIndex counts it, which is less than our estimate from above.
        """
        count = get_tokenizer()
        counted, shown = len(count(content)), self._shown
        room = counted - tokens_to_truncate
        # Another question may have been asked of the same block meanwhile.
        if shown is None or shown[0] != content or room <= 0:
            return None
        left = estimate_tokens(content) * room // counted
        while shorter := shown[1].to_prompt(left) if left > 0 else "":
            if len(count(shorter)) <= room:
                return shorter
            left -= max(1, left // 10)
        return None

    def _make_message(self, message: ChatMessage) -> dict[str, Any]:
        text = (message.content or "").encode(errors="ignore").decode().replace("\0", "")
        told: dict[str, Any] = {"role": message.role.value, "content": text[:LONGEST_TEXT]}
        session = message.additional_kwargs.get("session_id")
        # The session of the memory, where it is bound to one, is the one that counts.
        if session is not None and self.memory.scope.session is None:
            told["session"] = session
        return told
