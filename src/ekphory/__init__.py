"""ekphory: the memory-retrieval engine for AI agents.

from ekphory import Memory

memory = Memory("./memories")
memory.add("I prefer Python over JavaScript", producer="user", type="semantic")
result = memory.search("what language does the user like?", k=5)
"""

from __future__ import annotations

import os

# ONNX Runtime notes each process, and sends that away, unless it is told before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

TYPE_CHECKING = False  # as typing has it, whose import takes longer than all else here
if TYPE_CHECKING:
    from typing import Any

    from ekphory.agent.provider import AgentOptions
    from ekphory.errors import EkphoryError, InvalidInput
    from ekphory.filters.tree import Filter
    from ekphory.memory import AsyncMemory, Memory
    from ekphory.models.agent_reranker import Reranker
    from ekphory.models.agentrank import AgentRankEmbedder, AgentRankReranker
    from ekphory.models.embedder import EmbeddingModel
    from ekphory.models.loading import load_embedder
    from ekphory.revise import ProfileEntry, State
    from ekphory.search import SearchResult
    from ekphory.types import Failure, Hit, MemoryRecord, Revision, WriteReport

__version__ = "0.1.0"

_HOMES = {
    "AgentOptions": "ekphory.agent.provider",
    "AgentRankEmbedder": "ekphory.models.agentrank",
    "AgentRankReranker": "ekphory.models.agentrank",
    "AsyncMemory": "ekphory.memory",
    "EkphoryError": "ekphory.errors",
    "EmbeddingModel": "ekphory.models.embedder",
    "Failure": "ekphory.types",
    "Filter": "ekphory.filters.tree",
    "Hit": "ekphory.types",
    "InvalidInput": "ekphory.errors",
    "Memory": "ekphory.memory",
    "MemoryRecord": "ekphory.types",
    "ProfileEntry": "ekphory.revise",
    "Reranker": "ekphory.models.agent_reranker",
    "Revision": "ekphory.types",
    "SearchResult": "ekphory.search",
    "State": "ekphory.revise",
    "WriteReport": "ekphory.types",
    "load_embedder": "ekphory.models.loading",
}

__all__ = [
    "AgentOptions",
    "AgentRankEmbedder",
    "AgentRankReranker",
    "AsyncMemory",
    "EkphoryError",
    "EmbeddingModel",
    "Failure",
    "Filter",
    "Hit",
    "InvalidInput",
    "Memory",
    "MemoryRecord",
    "ProfileEntry",
    "Reranker",
    "Revision",
    "SearchResult",
    "State",
    "WriteReport",
    "__version__",
    "load_embedder",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401  any public name
    """Load a public name when it is first used, so that the import itself stays fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'ekphory' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
