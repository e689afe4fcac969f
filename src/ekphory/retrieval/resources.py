"""What stages may use beside the snapshot: models, and readers of whole memories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ekphory.models.chat import Chat
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.reranker import RerankingModel
from ekphory.types import MemoryRecord

RecordReader = Callable[[Sequence[int]], Mapping[int, MemoryRecord]]
"""Gives whole memories by key; one that is gone is left out."""
ChildReader = Callable[[Sequence[str]], Sequence[MemoryRecord]]
"""Gives the memories, in this scope and in view, whose `parent_id` is one of these."""


@dataclass(frozen=True, slots=True)
class RememberedRecords:
    """Reads whole memories, and each of them once in a search, whichever stages ask for it."""

    read: RecordReader
    _known: dict[int, MemoryRecord] = field(default_factory=dict)

    def __call__(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Give the records of these keys, which must be of the search's snapshot."""
        missing = [key for key in keys if key not in self._known]
        if missing:
            self._known.update(self.read(missing))
        return {key: self._known[key] for key in keys if key in self._known}


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalModels:
    """Models that a search can do without.

    Attributes:
        reranker: Reads a query together with each passage; None where there is none.
        chat: A language model; None where there is none.
    """

    reranker: RerankingModel | None = None
    chat: Chat | None = None


NO_OPTIONAL_MODELS = OptionalModels()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a search has at hand.

    Attributes:
        embedder: Embeds queries.
        records: Reads the memories of candidates; only keys of the snapshot may be asked for.
        children: Reads the parts of documents.
        reranker, chat: As in `OptionalModels`.
    """

    embedder: EmbeddingModel
    records: RecordReader
    children: ChildReader
    reranker: RerankingModel | None = None
    chat: Chat | None = None
