"""Models behind small protocols; `Embedder` and `Reranker` are those that users load by hand."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ekphory.models.agent_embedder import Embedder
    from ekphory.models.agent_reranker import Reranker
    from ekphory.models.agentrank import AgentRankEmbedder, AgentRankReranker
    from ekphory.models.torch_embedder import TorchOptions

__all__ = ["AgentRankEmbedder", "AgentRankReranker", "Embedder", "Reranker", "TorchOptions"]

_MODULES = {
    "AgentRankEmbedder": "agentrank",
    "AgentRankReranker": "agentrank",
    "Embedder": "agent_embedder",
    "Reranker": "agent_reranker",
    "TorchOptions": "torch_embedder",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401  any public name
    """Load the public name when it is first used, so that importing a module here stays fast."""
    if name not in __all__:
        raise AttributeError(f"module 'ekphory.models' has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
