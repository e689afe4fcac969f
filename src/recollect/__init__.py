"""recollect: the memory-retrieval engine for AI agents.

from recollect import Memory

memory = Memory("./memories")
memory.add("I prefer Python over JavaScript", producer="user", type="semantic")
result = memory.search("what language does the user like?", k=5)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.async_memory import AsyncMemory
    from recollect.errors import RecollectError
    from recollect.memory import Memory
    from recollect.models.loading import load_embedder
    from recollect.results import SearchResult
    from recollect.types import Failure, Hit, MemoryRecord, WriteReport

__version__ = "0.1.0"

_HOMES = {
    "AsyncMemory": "recollect.async_memory",
    "Failure": "recollect.types",
    "Hit": "recollect.types",
    "Memory": "recollect.memory",
    "MemoryRecord": "recollect.types",
    "RecollectError": "recollect.errors",
    "SearchResult": "recollect.results",
    "WriteReport": "recollect.types",
    "load_embedder": "recollect.models.loading",
}

__all__ = [
    "AsyncMemory",
    "Failure",
    "Hit",
    "Memory",
    "MemoryRecord",
    "RecollectError",
    "SearchResult",
    "WriteReport",
    "__version__",
    "load_embedder",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401  any public name
    """Load a public name when it is first used, so that the import itself stays fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
