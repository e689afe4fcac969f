"""Models behind small protocols; `Embedder` is the one that users load by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.models.agent_embedder import Embedder

__all__ = ["Embedder"]


def __getattr__(name: str) -> Any:  # noqa: ANN401  any public name
    """Load the public name when it is first used, so that importing a module here stays fast."""
    if name not in __all__:
        raise AttributeError(f"module 'recollect.models' has no attribute {name!r}")
    from recollect.models.agent_embedder import Embedder

    return Embedder
