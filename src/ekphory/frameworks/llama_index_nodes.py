"""Memories as LlamaIndex's nodes, and nodes as passages that a reranker reads."""

from __future__ import annotations

from typing import Any

from ekphory.errors import MissingExtra
from ekphory.models.rerank_input import RerankPassage
from ekphory.moments import to_utc
from ekphory.types import Hit, MemoryRecord

try:
    from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
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


def node_of(hit: Hit) -> NodeWithScore:
    """Give a hit as a node; its score is a probability.

    The metadata holds the memory's fields and its own metadata, of which a key that is called as
    a field is named `metadata.<key>`.
    """
    metadata = _metadata(hit.memory)
    node = TextNode(
        id_=hit.id,
        text=hit.text,
        metadata=metadata,
        excluded_llm_metadata_keys=[name for name in metadata if name not in _SHOWN],
        excluded_embed_metadata_keys=[name for name in metadata if name not in _SHOWN[1:]],
    )
    return NodeWithScore(node=node, score=hit.score)


def passage_of(found: NodeWithScore) -> RerankPassage:
    """Give a node as a passage: a memory as such, another as LlamaIndex would embed it."""
    node = found.node
    if not node.metadata.keys() >= _OWN:
        return RerankPassage(node.get_content(metadata_mode=MetadataMode.EMBED))
    around = "".join(f"{node.metadata[name]}: " for name in _SHOWN[:0:-1] if name in node.metadata)
    moment = to_utc(node.metadata["at"], field="at")
    return RerankPassage(around + node.get_content(metadata_mode=MetadataMode.NONE), at=moment)


def _metadata(record: MemoryRecord) -> dict[str, Any]:
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
