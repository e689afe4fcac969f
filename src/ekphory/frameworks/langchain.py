"""LangChain: a memory as a retriever or a chat's history, a reranker as a document compressor."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

from ekphory.errors import InvalidInput, MissingExtra
from ekphory.filters.tree import And, IsNull, MetadataField, Not
from ekphory.memory import Memory
from ekphory.models.agent_reranker import Reranker
from ekphory.models.reranker import RerankPassage
from ekphory.prompting.recall_block import strip_recall_blocks
from ekphory.scope import owned_like
from ekphory.types import DEFAULT_POOL, Hit, now_utc, to_utc
from ekphory.write import LONGEST_TEXT

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
        Callbacks,
    )
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables.config import run_in_executor
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


_SETTINGS = ("k", "filter", "pools", "min_score", "preset", "agent_mode")


class EkphoryRetriever(BaseRetriever):
    """Finds the memories that answer a query, as documents.

        retriever = EkphoryRetriever(memory=Memory("./memories"), k=5)
        documents = retriever.invoke("what language does the user like?")

    A document's text is the memory's; its metadata tells `id`, `score` (the probability that it
    answers), `at`, `type`, `importance`, what else the memory says of its origin, and under
    `metadata` the caller's own. The arguments besides `memory` are those of `Memory.search`, and
    `invoke` takes them for one question: `retriever.invoke("…", k=3)`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

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
        **changed: Any,  # noqa: ANN401  any of the settings
    ) -> list[Document]:
        settings = {name: getattr(self, name) for name in _SETTINGS}
        for name in changed:
            if name not in settings:
                choices = ", ".join(settings)
                raise InvalidInput(name, changed[name], "no such setting", f"Give {choices}")
        result = self.memory.search(query, **settings | changed)
        return [make_document(hit) for hit in result]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        **changed: Any,  # noqa: ANN401  any of the settings
    ) -> list[Document]:
        settings = {"run_manager": run_manager.get_sync(), **changed}
        return await run_in_executor(None, self._get_relevant_documents, query, **settings)


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


# A chat's history

MESSAGE_KEY = "langchain_message"
"""The metadata key under which a memory holds its message, as JSON."""
TOOLS_POOL = "agent_tools"
"""Where everything stands that neither the user nor the assistant said."""
_ROLES = {"human": "user", "ai": "assistant"}
_ALL = 2**31 - 1


class EkphoryChatHistory(BaseChatMessageHistory):
    """The messages of a session, in the scope of a memory.

        history = EkphoryChatHistory(Memory("./memories", user="mara", session="monday"))
        history.add_user_message("My sister Ines keeps bees")
        history.add_message(model.invoke(history.messages))

    Every message comes back equal and in order. They are memories besides: what was said is found
    by a search in the session's scope, or in a wider one. `clear` forgets both.

    Args:
        memory: Bound to a session. It is not closed.

    Raises:
        InvalidInput: The memory is bound to no session.
    """

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        if memory.scope.session is None:
            problem = "is bound to no session"
            raise InvalidInput("memory", memory.scope, problem, "Open it with Memory(…, session=)")
        self._memory = memory
        # Of exactly this scope: what it leaves open is missing in its messages.
        self._held = And((owned_like(memory.scope), Not(IsNull(MetadataField(MESSAGE_KEY)))))

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # an attribute there
        """All messages, oldest first."""
        records = self._memory.list(filter=self._held, limit=_ALL, order="written")
        return messages_from_dict([json.loads(str(each.metadata[MESSAGE_KEY])) for each in records])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages, all or none; on return they are durable.

        Raises:
            InvalidInput: A message holds what JSON cannot.
        """
        if messages:
            self._memory.add_messages([_keep_message(message) for message in messages])

    def clear(self) -> None:
        """Forget all messages, and with them what can be found of the dialogue."""
        self._memory.forget(filter=self._held)


def _keep_message(message: BaseMessage) -> dict[str, Any]:
    """Return a message for `Memory.add_messages`; its text is never empty."""
    try:
        # ASCII escapes keep what UTF-8 cannot carry.
        kept = json.dumps(message_to_dict(message), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"cannot be kept ({error})"
        raise InvalidInput("messages", message, problem, "Give what JSON can hold") from error
    text = message.text.encode(errors="ignore").decode().replace("\0", "")[:LONGEST_TEXT]
    role = _ROLES.get(message.type)
    return {
        "id": uuid.uuid4().hex,
        # A message that holds nothing but recalled memories would not be stored, and must be.
        "content": text if strip_recall_blocks(text).strip() else message.type,
        "role": role,
        "pool": TOOLS_POOL if role is None else DEFAULT_POOL,
        "metadata": {MESSAGE_KEY: kept},
    }
